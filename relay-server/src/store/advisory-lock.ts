/** Locks by name, for cases in which rows alone cannot keep two transactions apart. */
import { CompiledQuery, PostgresAdapter } from "kysely";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { Db } from "./open.ts";

const LOCK = "select pg_advisory_xact_lock(hashtextextended($1, 0))";
const SHARED_LOCK = LOCK.replace("lock(", "lock_shared(");

/**
 * Until the transaction ends, no other caller with the same name gets past this, here or on another
 * node. SQLite has only one writer at a time and needs no lock.
 */
export const hold = (tx: Db, name: string): MaybePromise<unknown> => take(tx, LOCK, name);

/** The same, but only those that `hold` the name do not get past this. */
export const share = (tx: Db, name: string): MaybePromise<unknown> => take(tx, SHARED_LOCK, name);

const take = (tx: Db, lock: string, name: string): MaybePromise<unknown> =>
  tx.getExecutor().adapter instanceof PostgresAdapter
    ? tx.executeQuery(CompiledQuery.raw(lock, [name]))
    : undefined;
