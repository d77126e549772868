/** Every opening of a store's file. */
import { DatabaseSync } from "node:sqlite";
import { notAFile } from "@blindrelay/protocol/platform";

/** How long to wait for another process that writes: commands beside a relay. */
const BUSY_MS = 5000;

/**
 * Throws for a folder or a pipe in its place, which SQLite calls a disk error, or waits for without
 * end.
 */
export const openSqlite = (path: string, { readOnly = false } = {}): DatabaseSync => {
  const problem = notAFile(path);
  if (problem !== null) throw new Error(`${problem.what}; ${problem.fix}`);
  return new DatabaseSync(path, { readOnly, timeout: BUSY_MS });
};
