/**
 * One relay per SQLite store: presence, lockouts and takeovers are in the memory of one process, so
 * a second one on the same store would split them. The lock is SQLite's own, held on an empty
 * database next to the store: the kernel releases it when the process ends, even by a crash, and
 * commands that work on the store itself are not affected.
 */
import { chmodSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** SQLite's result code if another process has the lock. */
const SQLITE_BUSY = 5;

export interface StoreLock {
  /** Releases the lock. */
  release(): void;
}

/**
 * Takes the lock at `path`; null if another process has it. Throws SQLite's error if that cannot be
 * determined.
 */
export const lockStore = (path: string): StoreLock | null => {
  const database = new DatabaseSync(path);
  try {
    chmodSync(path, 0o600);
    database.exec("begin exclusive");
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw error;
  }
  return { release: () => database.close() };
};
