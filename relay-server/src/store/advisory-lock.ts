/** Locks by name, for cases in which rows alone cannot keep two transactions apart. */
import { CompiledQuery, PostgresAdapter } from "kysely";
import type { Answer } from "../answer.ts";
import type { Db } from "./open.ts";

const LOCK = "select pg_advisory_xact_lock(hashtextextended($1, 0))";

/**
 * Until the transaction ends, no other caller passes this with the same name: neither here nor on
 * another node. SQLite has one writer at a time, so there it has nothing to do.
 */
export const hold = (tx: Db, name: string): Answer<unknown> =>
  tx.getExecutor().adapter instanceof PostgresAdapter
    ? tx.executeQuery(CompiledQuery.raw(LOCK, [name]))
    : undefined;
