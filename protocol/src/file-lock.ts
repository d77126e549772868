/**
 * One process at a time has a file: no write of another process is lost. The lock is SQLite's own,
 * held on an empty database next to the file: the kernel releases it when the process ends, even by
 * a crash. The lock's file is not removed, because a removed one could be held twice.
 */
import { closeSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Failure } from "./command-line.ts";
import { giveToOwner, makeFolder } from "./file-owner.ts";

/** A change takes milliseconds, or a tenth of a second with a passphrase. */
const PATIENCE_MS = 10_000;
/** SQLite's result code if another process has the lock. */
const SQLITE_BUSY = 5;

/** SQLite would make it readable by others. */
const makeFile = (path: string): void => {
  try {
    const file = openSync(path, "wx", 0o600);
    giveToOwner(file, dirname(path));
    closeSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
};

const take = (path: string, patienceMs: number): DatabaseSync => {
  makeFile(path);
  const database = new DatabaseSync(path, { timeout: patienceMs });
  try {
    database.exec("begin exclusive");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
};

/**
 * Keeps other processes off `path` until the returned function is called, or this process ends;
 * null if one has it. Throws what a folder that cannot be written throws.
 */
export const holdLock = (path: string): (() => void) | null => {
  makeFolder(dirname(path));
  try {
    const database = take(`${path}.lock`, 0);
    return () => database.close();
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw error;
  }
};

/**
 * Waits for processes that change `path`, then runs `change` while no other does. Throws a Failure
 * (usage) if its folder cannot be written or another process does not finish, and whatever `change`
 * throws.
 */
export const withLock = (path: string, change: () => void, patienceMs = PATIENCE_MS): void => {
  let database: DatabaseSync;
  try {
    makeFolder(dirname(path));
    database = take(`${path}.lock`, patienceMs);
  } catch (error) {
    const isBusy = (error as { errcode?: number }).errcode === SQLITE_BUSY;
    const reason = isBusy
      ? "another process is changing it and does not finish; end that one and try again"
      : (error as Error).message;
    throw new Failure("usage", `cannot write ${path}: ${reason}`, error);
  }
  try {
    change();
  } finally {
    database.close();
  }
};
