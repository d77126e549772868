/**
 * Deletes what retention has found. SQLite works on the relay's only thread, so it deletes a few
 * rows at a time: 180,000 entries that one user wrote within an hour blocked it for half a second.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type RawBuilder, sql } from "kysely";
import type { Db, Tables } from "./tables.ts";

const AT_ONCE = 100;
const PAUSE_MS = 5;

/** `key`: the table's primary key. */
export const forgetRows = async (
  db: Db,
  table: keyof Tables,
  key: string,
  condition: RawBuilder<unknown>,
): Promise<void> => {
  const [from, id] = [sql.table(table), sql.ref(key)];
  for (;;) {
    const { numAffectedRows } = await sql`
      delete from ${from} where ${id} in
        (select ${id} from ${from} where ${condition} limit ${AT_ONCE})`.execute(db);
    if (Number(numAffectedRows ?? 0) < AT_ONCE) return;
    await pause();
  }
};

/** Deletes all but the newest `kept` of the rows `of`, by the column `at`; of those only `some`. */
export const forgetOlder = async (
  db: Db,
  [table, key, at]: readonly [table: keyof Tables, key: string, at: string],
  of: RawBuilder<unknown>,
  kept: number,
  some: RawBuilder<unknown> = sql`true`,
): Promise<void> => {
  const time = sql.ref(at);
  const { rows } = await sql<{ since: number }>`
    select ${time} as since from ${sql.table(table)} where ${of}
    order by ${time} desc limit 1 offset ${kept - 1}`.execute(db);
  const [last] = rows;
  if (last === undefined) return;
  await forgetRows(db, table, key, sql`${of} and ${some} and ${time} < ${last.since}`);
};

/** Between two steps of a deletion. */
export const pause = (): Promise<void> => sleep(PAUSE_MS);

/** The users with more than `kept` rows. */
export const crowdedOwners = async (
  db: Db,
  table: "tokens" | "sessions" | "notices",
  kept: number,
): Promise<string[]> => {
  const rows = await db
    .selectFrom(table)
    .select("user_id")
    .where("user_id", "is not", null)
    .groupBy("user_id")
    .having((of) => of.fn.countAll<number>(), ">", kept)
    .execute();
  return rows.map(({ user_id }) => user_id as string);
};
