/** What a selector asks of the store. Who is online it does not know: that is the hub's to say. */
import { setImmediate as turn } from "node:timers/promises";
import { type Condition, holds, type Selector, SelectorError } from "@blindrelay/protocol/selector";
import {
  type Expression,
  type ExpressionBuilder,
  type RawBuilder,
  type SqlBool,
  sql,
} from "kysely";
import type { Db } from "./open.ts";
import type { Tables } from "./tables.ts";

/** Of all conditions of a selector: both engines take more parameters in one statement. */
const MAX_VALUES = 20_000;

const COLUMNS = {
  id: "agent_id",
  name: "name",
  runtime: "runtime",
  firmware: "firmware_version",
} as const;

export type Chosen = (agents: ExpressionBuilder<Tables, "agents">) => Expression<SqlBool>;

const columnOf = ({ key }: Condition) => COLUMNS[key as keyof typeof COLUMNS];

const labelOf = ({ key }: Condition): string | null =>
  key.startsWith("label.") ? key.slice("label.".length) : null;

/** Whether a column's value is what a condition wants. */
type Wanted = (column: string) => RawBuilder<SqlBool>;

/** In the engine's own count: a database in SQL_ASCII counts bytes. */
const lengthOf = (text: string): RawBuilder<number> => sql`length(cast(${text} as text))`;

export const beginsWith = (column: string, prefix: string): RawBuilder<SqlBool> =>
  sql`substr(${sql.ref(column)}, 1, ${lengthOf(prefix)}) = ${prefix}`;

/**
 * A glob of the forms that people write, as SQL that takes linear time; null for others. SQLite's
 * own GLOB takes exponential time for some.
 */
const simpleGlob = (pattern: string): Wanted | null => {
  const [begin = "", middle, end, ...more] = pattern.split("*");
  if (middle === undefined) return (column) => sql`${sql.ref(column)} = ${pattern}`;
  if (end === undefined) {
    return (column) => {
      const of = sql.ref(column);
      return sql`(length(${of}) >= ${lengthOf(begin)} + ${lengthOf(middle)}
        and ${beginsWith(column, begin)}
        and substr(${of}, length(${of}) - ${lengthOf(middle)} + 1) = ${middle})`;
    };
  }
  if (begin + end !== "" || middle === "" || more.length > 0) return null;
  // The engines have no name in common for the search of a text in a text.
  return (column) => sql`replace(${sql.ref(column)}, ${middle}, '') <> ${sql.ref(column)}`;
};

/**
 * The values that agents have and that a condition holds for. Throws a SelectorError if they are
 * more than `most`.
 */
const valuesFor = async (
  db: Db,
  userId: string,
  condition: Condition,
  most: number,
): Promise<string[]> => {
  const label = labelOf(condition);
  const column = sql.ref(label === null ? columnOf(condition) : "value");
  const { rows } = await sql<{ value: string }>`
    select distinct ${column} as value from ${sql.table(label === null ? "agents" : "agent_labels")}
    where user_id = ${userId} and ${column} is not null
    ${label === null ? sql`` : sql`and key = ${label}`}`.execute(db);
  const values = rows.map(({ value }) => value).filter((value) => holds(condition, value));
  if (values.length <= most) return values;
  throw new SelectorError(`up to ${condition.key}, more than ${MAX_VALUES} values match`);
};

interface Room {
  /** How many values the conditions that are left may have. */
  values: number;
}

/** Versions are compared here, because SQL cannot. */
const wantedBy = async (
  db: Db,
  userId: string,
  condition: Condition,
  room: Room,
): Promise<Wanted> => {
  const { operator, value } = condition;
  if (operator === "=" || operator === "!=") return (column) => sql`${sql.ref(column)} = ${value}`;
  const glob = operator === "~" ? simpleGlob(value) : null;
  if (glob !== null) return glob;
  await turn(); // reading the values of 10,000 agents takes 25 ms
  const values = await valuesFor(db, userId, condition, room.values);
  room.values -= values.length;
  // An empty list is an error in SQL.
  if (values.length === 0) return () => sql`1 = 0`;
  return (column) => sql`${sql.ref(column)} in (${sql.join(values)})`;
};

const chosenBy = async (
  db: Db,
  userId: string,
  condition: Condition,
  room: Room,
): Promise<Chosen> => {
  const wanted = await wantedBy(db, userId, condition, room);
  const isNot = condition.operator === "!=";
  const label = labelOf(condition);
  return (agents) => {
    if (label === null) {
      const column = columnOf(condition);
      const is = wanted(column);
      return isNot ? agents.or([agents(column, "is", null), agents.not(is)]) : is;
    }
    const labelled = agents
      .selectFrom("agent_labels")
      .select("agent_labels.agent_id")
      .where("agent_labels.user_id", "=", userId)
      .where("agent_labels.key", "=", label)
      .where(wanted("agent_labels.value"));
    return agents("agents.agent_id", isNot ? "not in" : "in", labelled);
  };
};

/**
 * The conditions of a selector without those on `online`. Throws a SelectorError if too many
 * different values match.
 */
export const chosenIn = async (db: Db, userId: string, selector: Selector): Promise<Chosen[]> => {
  const room = { values: MAX_VALUES };
  const chosen: Chosen[] = [];
  for (const condition of selector) {
    if (condition.key !== "online") chosen.push(await chosenBy(db, userId, condition, room));
  }
  return chosen;
};
