/**
 * Logins of agents are numbered over all nodes; a SQLite store has one node, and needs no numbers.
 */
import { type Kysely, PostgresAdapter, sql } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  if (!(db.getExecutor().adapter instanceof PostgresAdapter)) return;
  await sql`create sequence agent_epochs`.execute(db);
};
