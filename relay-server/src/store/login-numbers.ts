/**
 * Decides which login of an agent is newer, regardless of nodes and their clocks: the database
 * numbers logins when it looks up their credentials.
 */
import { PostgresAdapter, type RawBuilder, sql } from "kysely";
import type { Db } from "./open.ts";

/** An expression: the next number if the column names an agent, else 0; always 0 with SQLite. */
export const nextLoginNumber = (db: Db, agentColumn: string): RawBuilder<number> =>
  db.getExecutor().adapter instanceof PostgresAdapter
    ? sql<number>`case when ${sql.ref(agentColumn)} is null then 0 else nextval('agent_epochs') end`
    : sql<number>`0`;
