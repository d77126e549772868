/** Looks at a SQLite store before anything uses it. */
import { statSync } from "node:fs";
import { openSqlite } from "./open-sqlite.ts";
import { classifier, sqliteDamage } from "./sqlite-failures.ts";

/** An extended code: a journal must be taken back first, and the file was opened read-only. */
const SQLITE_READONLY_ROLLBACK = 776;

/** Whether nothing can be read because a process died while it wrote; who may write mends that. */
export const isHotJournal = (error: unknown): boolean => {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ((at as { errcode?: number }).errcode === SQLITE_READONLY_ROLLBACK) return true;
  }
  return false;
};

/** Undoes what a process that died was writing, as whoever opens the store for writing does. */
export const takeBackJournal = (path: string): void => {
  using database = openSqlite(path);
  database.prepare("select count(*) from sqlite_schema").get();
};

/** Up to here also every index is compared with its table, which takes ten times as long. */
const THOROUGH_BYTES = 64 * 1024 * 1024;
/** `quick_check` takes a millisecond for each MiB, once the file is in memory. */
const MAX_CHECKED_BYTES = 1024 * 1024 * 1024;

const verify = (path: string, check: "quick_check" | "integrity_check"): void => {
  const look = () => {
    using database = openSqlite(path, { readOnly: true });
    return Object.values(database.prepare(`pragma ${check}(1)`).get() ?? {})[0];
  };
  const lookAfterCrash = () => {
    try {
      return look();
    } catch (error) {
      if (!isHotJournal(error)) throw error;
      takeBackJournal(path);
      return look();
    }
  };
  const problem = classifier(path, () => undefined)(lookAfterCrash);
  if (problem === "ok") return;
  // Its last line is the finding; a Failure's message is one line.
  throw sqliteDamage(new Error(String(problem).split("\n").at(-1)), path);
};

/** Before a start. Throws StoreDamaged if anything is broken; a store over 1 GiB is not read. */
export const verifyStore = (path: string): void => {
  const { size } = statSync(path);
  if (size > MAX_CHECKED_BYTES) return;
  verify(path, size > THOROUGH_BYTES ? "quick_check" : "integrity_check");
};

/** While a relay runs, in its thread; a store over 64 MiB is not read. */
export const verifyBriefly = (path: string): void => {
  if (statSync(path).size <= THOROUGH_BYTES) verify(path, "quick_check");
};
