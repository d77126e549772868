/** What a selector asks of the store. Who is online it does not know: that is the hub's to say. */
import { type Condition, holds, type Selector, SelectorError } from "@blindrelay/protocol/selector";
import { type Expression, type ExpressionBuilder, type SqlBool, sql } from "kysely";
import type { Db } from "./open.ts";
import type { Tables } from "./tables.ts";

/** Both engines take more parameters in one statement. */
const MAX_VALUES = 20_000;

const COLUMNS = {
  id: "agent_id",
  name: "name",
  runtime: "runtime",
  firmware: "firmware_version",
} as const;

export type Chosen = (agents: ExpressionBuilder<Tables, "agents">) => Expression<SqlBool>;

const labelOf = ({ key }: Condition): string | null =>
  key.startsWith("label.") ? key.slice("label.".length) : null;

/**
 * The values that agents have and that a condition holds for. Versions are compared here because
 * SQL cannot, globs because SQLite takes exponential time for some.
 */
const valuesFor = async (db: Db, userId: string, condition: Condition): Promise<string[]> => {
  const label = labelOf(condition);
  const column = label === null ? COLUMNS[condition.key as keyof typeof COLUMNS] : "value";
  const table = label === null ? "agents" : "agent_labels";
  const begins = condition.operator === "~" ? (condition.value.split("*")[0] ?? "") : "";
  const { rows } = await sql<{ value: string }>`
    select distinct ${sql.ref(column)} as value from ${sql.table(table)}
    where user_id = ${userId} and ${sql.ref(column)} is not null
    ${label === null ? sql`` : sql`and key = ${label}`}
    ${begins === "" ? sql`` : sql`and substr(${sql.ref(column)}, 1, ${[...begins].length}) = ${begins}`}
  `.execute(db);
  const values = rows.map(({ value }) => value).filter((value) => holds(condition, value));
  if (values.length <= MAX_VALUES) return values;
  throw new SelectorError(`${condition.key} has more than ${MAX_VALUES} values that match`);
};

/** Throws a SelectorError if too many different values match. */
const chosenBy = async (db: Db, userId: string, condition: Condition): Promise<Chosen> => {
  const { operator, value } = condition;
  const isPlain = operator === "=" || operator === "!=";
  const values = isPlain ? [value] : await valuesFor(db, userId, condition);
  const label = labelOf(condition);
  return (agents) => {
    // An empty list is an error in SQL.
    if (values.length === 0) return sql<SqlBool>`1 = 0`;
    if (label === null) {
      const column = COLUMNS[condition.key as keyof typeof COLUMNS];
      if (operator !== "!=") return agents(column, "in", values);
      return agents.or([agents(column, "is", null), agents(column, "!=", value)]);
    }
    const labelled = agents
      .selectFrom("agent_labels")
      .select("agent_labels.agent_id")
      .where("agent_labels.user_id", "=", userId)
      .where("agent_labels.key", "=", label)
      .where("agent_labels.value", "in", values);
    return agents("agents.agent_id", operator === "!=" ? "not in" : "in", labelled);
  };
};

/** The conditions of a selector without those on `online`. Throws a SelectorError. */
export const chosenIn = (db: Db, userId: string, selector: Selector): Promise<Chosen[]> =>
  Promise.all(
    selector
      .filter(({ key }) => key !== "online")
      .map((condition) => chosenBy(db, userId, condition)),
  );
