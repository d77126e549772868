/** Locks by name, where rows alone cannot keep two transactions apart. */
import { PostgresAdapter, sql } from "kysely";
import type { Db } from "./open.ts";

/**
 * Until the transaction ends, nobody else gets past this with the same name: neither here nor on
 * another node. SQLite has one writer at a time, so there it has nothing to do.
 */
export const hold = async (tx: Db, name: string): Promise<void> => {
  if (!(tx.getExecutor().adapter instanceof PostgresAdapter)) return;
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(tx);
};
