/** Locks by name, for cases in which rows alone cannot keep two transactions apart. */
import { CompiledQuery, PostgresAdapter } from "kysely";
import type { MaybePromise } from "../maybe-promise.ts";
import type { Db } from "./open.ts";

const LOCK = "select pg_advisory_xact_lock(hashtextextended($1, 0))";

/**
 * Until the transaction ends, no other caller with the same name gets past this, here or on another
 * node. SQLite has only one writer at a time and needs no lock.
 */
export const hold = (tx: Db, name: string): MaybePromise<unknown> =>
  tx.getExecutor().adapter instanceof PostgresAdapter
    ? tx.executeQuery(CompiledQuery.raw(LOCK, [name]))
    : undefined;
