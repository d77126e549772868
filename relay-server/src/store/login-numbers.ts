/**
 * Decides which login of an agent is the newer one, whatever node it reached and whatever its clock
 * shows: the database numbers logins when it looks up their credentials.
 */
import { PostgresAdapter, type RawBuilder, sql } from "kysely";
import type { Db } from "./open.ts";

/** An expression: the next number where the column names an agent, else 0; embedded always 0. */
export const nextLoginNumber = (db: Db, agentColumn: string): RawBuilder<number> =>
  db.getExecutor().adapter instanceof PostgresAdapter
    ? sql<number>`case when ${sql.ref(agentColumn)} is null then 0 else nextval('agent_epochs') end`
    : sql<number>`0`;
