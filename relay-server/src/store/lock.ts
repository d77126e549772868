/**
 * One relay per embedded store: presence, lockouts and takeovers live in one process, so a second
 * one on the same store would split them. The lock is SQLite's own, held on an empty database
 * beside the store: the kernel releases it with the process, however that ends, so a crash leaves
 * none behind, and commands that work on the store itself are not affected by it.
 */
import { chmodSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** SQLite's result code where another process has the lock. */
const SQLITE_BUSY = 5;

export interface StoreLock {
  /** Releases the lock. */
  release(): void;
}

/**
 * Takes the lock at `path`; null if another has it. Throws what SQLite says where it cannot tell.
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
