/** What an error of node:sqlite says of the store: try again, or restore a backup. */
import { StoreDamaged, StoreUnavailable } from "./unavailable.ts";

/** Hears of each failure of the store, whatever asked it. */
export type Heed = (failure: StoreUnavailable) => void;

/** Runs something that uses the database, and says what a failure means. */
export type Run = <T>(work: () => T) => T;

/** Primary result codes after which a retry may succeed, or another disk would help. */
const PASSING = {
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_NOMEM: 7,
  SQLITE_READONLY: 8,
  SQLITE_IOERR: 10,
  SQLITE_FULL: 13,
  SQLITE_CANTOPEN: 14,
} as const;

/** Primary result codes that say that the file is not what was written. */
const DAMAGED: { readonly [name: string]: number } = { SQLITE_CORRUPT: 11, SQLITE_NOTADB: 26 };

/** The same of SQLITE_IOERR: _READ, _SHORT_READ, _DATA, _CORRUPTFS. */
const UNREADABLE: readonly number[] = [266, 522, 8202, 8458];

/** With the log, which would be applied to the backup, to which it does not belong. */
const RESTORE_BACKUP = "move the store with its -wal and -shm away, and restore the newest backup";
export const WAY_BACK = `stop the relay, ${RESTORE_BACKUP}`;
/** Where it is written at length. */
const PAGE = '(docs/keys-and-backups.md, "A damaged store")';

export const sqliteDamage = (cause: unknown, path: string): StoreDamaged =>
  new StoreDamaged(cause, `the store ${path}`, `${WAY_BACK} ${PAGE}`);

/** `gone`: the one of its files that is no longer where it was. */
export const sqliteLost = (path: string, gone: string): StoreDamaged =>
  new StoreDamaged(
    new Error(`${gone} was moved, removed or replaced while the relay ran`),
    `the store ${path}`,
    `stop the relay and put all its files back; if they are gone, ${RESTORE_BACKUP} ${PAGE}`,
  );

/** The store's failure that an error of node:sqlite is; null if it is the caller's. */
const failureOf = (error: unknown, path: string): StoreUnavailable | null => {
  const { errcode = 0 } = error as { errcode?: number };
  const nameIn = (codes: { readonly [name: string]: number }) =>
    Object.entries(codes).find(([, code]) => code === (errcode & 0xff))?.[0];
  const name = nameIn(DAMAGED) ?? nameIn(PASSING);
  if (name === undefined) return null;
  const cause = new Error(`${name}: ${(error as Error).message}`, { cause: error });
  const isDamaged = nameIn(DAMAGED) !== undefined || UNREADABLE.includes(errcode);
  return isDamaged ? sqliteDamage(cause, path) : new StoreUnavailable(cause);
};

export const classifier =
  (path: string, heed: Heed): Run =>
  (work) => {
    try {
      return work();
    } catch (error) {
      const failure = failureOf(error, path);
      if (failure === null) throw error;
      heed(failure);
      throw failure;
    }
  };
