/** Locks by name, for cases in which rows alone cannot keep two transactions apart. */
import { CompiledQuery, PostgresAdapter } from "kysely";
import type { MaybePromise } from "../maybe-promise.ts";
import type { Db } from "./open.ts";

const HOLD = "select pg_advisory_xact_lock(hashtextextended($1, 0))";
const SHARE = "select pg_try_advisory_xact_lock_shared(hashtextextended($1, 0)) as shared";

/** SQLite has only one writer at a time and needs no lock. */
const needsLock = (tx: Db): boolean => tx.getExecutor().adapter instanceof PostgresAdapter;

/**
 * Until the transaction ends, no other caller with the same name gets past this, here or on another
 * node.
 */
export const hold = (tx: Db, name: string): MaybePromise<unknown> =>
  needsLock(tx) ? tx.executeQuery(CompiledQuery.raw(HOLD, [name])) : undefined;

/**
 * The same, but only for those that `hold` the name; false if one does or waits for it. It does not
 * wait: a caller that has changed a row which the holder wants would wait for ever.
 */
export const share = async (tx: Db, name: string): Promise<boolean> => {
  if (!needsLock(tx)) return true;
  const { rows } = await tx.executeQuery<{ shared: boolean }>(CompiledQuery.raw(SHARE, [name]));
  return rows[0]?.shared === true;
};
