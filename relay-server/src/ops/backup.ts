/**
 * `backup`: a consistent copy of the store, made while the relay runs. The master key is
 * deliberately not included, so that a backup yields no token.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Failure } from "@blindrelay/protocol/command-line";
import { flushFolder, notAFile } from "@blindrelay/protocol/platform";
import { withDiskProblem } from "../base/disk-problem.ts";
import { storePath } from "../control/data-dir.ts";
import { openSqlite } from "../store/open-sqlite.ts";

/** No backup goes on for so long without writing: it was killed. */
const DEAD_MS = 86_400_000;

interface BackupResult {
  /** Absolute path. */
  readonly file: string;
  readonly bytes: number;
}

/**
 * Copies the SQLite store of a data folder to a new file. Throws a Failure that says what to do.
 */
export const backupStore = (data: string, store: string | undefined, to: string): BackupResult => {
  if (store !== undefined && store !== "sqlite") {
    throw new Failure("usage", "this store is PostgreSQL: take its backup with pg_dump");
  }
  const source = storePath(data);
  if (!existsSync(source)) throw new Failure("unreachable", `no store at ${source}`);
  const problem = notAFile(source);
  if (problem !== null) throw new Failure("unreachable", `${problem.what}; ${problem.fix}`);
  const file = resolve(to);
  if (existsSync(file)) throw new Failure("usage", `${file} exists: name a new file`);
  // Elsewhere until it is complete, so that nobody mistakes a partial backup for one; in a folder
  // of its own, which others cannot enter, and which another backup of this name does not touch.
  const prefix = join(dirname(file), `.${basename(file)}.part-`);
  let folder: string | null = null;
  try {
    folder = mkdtempSync(prefix);
    removeDead(prefix);
    const part = join(folder, basename(file));
    copy(source, part);
    chmodSync(part, 0o600);
    makeSure(part);
    const made = openSync(part, "r+");
    fsyncSync(made);
    closeSync(made);
    renameSync(part, file);
    flushFolder(dirname(file));
  } catch (error) {
    if (error instanceof Failure) throw error;
    const cause = withDiskProblem(error, dirname(file));
    throw new Failure("unreachable", `cannot write ${file}: ${cause}`, error);
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
  }
  return { file, bytes: statSync(file).size };
};

/** Removes what backups to the same file have left that were killed long ago. */
const removeDead = (prefix: string): void => {
  const before = Date.now() - DEAD_MS;
  for (const name of readdirSync(dirname(prefix))) {
    const path = join(dirname(prefix), name);
    if (!path.startsWith(prefix)) continue;
    try {
      const parts = readdirSync(path).map((part) => join(path, part));
      const isDead = [path, ...parts].every((each) => lstatSync(each).mtimeMs < before);
      if (isDead) rmSync(path, { recursive: true });
    } catch {
      // Another user's, no folder, or gone meanwhile.
    }
  }
};

const copy = (source: string, to: string): void => {
  using database = openSqlite(source, { readOnly: true });
  database.prepare("vacuum into ?").run(to);
};

/** A backup that cannot be read is useless. */
const makeSure = (path: string): void => {
  using made = new DatabaseSync(path, { readOnly: true });
  const problems = made.prepare("pragma integrity_check").all();
  if (problems[0]?.integrity_check === "ok") return;
  throw new Failure("unreachable", "the store is damaged: run blindrelay-server check");
};
