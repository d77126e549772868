/** Writes files that hold secrets or what a person has added: never in part. */
import { closeSync, openSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { failing } from "./failing.ts";

/** What `step` returns. Throws a Failure (usage) that names the path. */
export const writing = <T>(path: string, step: () => T): T =>
  failing("usage", `cannot write ${path}: `, step);

/** The file that `path` leads to: a link is followed, so that what it points to is changed. */
export const targetOf = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
};

/**
 * Writes a file of mode 0600 that is whole or as it was, however the command ends. Throws a Failure
 * (usage).
 */
export const writeWholeFile = (path: string, text: string): void => {
  const target = targetOf(path);
  const fresh = `${target}.${process.pid}.new`;
  writing(path, () => {
    try {
      writeFileSync(fresh, text, { mode: 0o600, flush: true });
      renameSync(fresh, target);
    } catch (error) {
      rmSync(fresh, { force: true });
      throw error;
    }
  });
};

/** Makes a file of mode 0600, whole or not at all. Throws, as Node does, if there is one. */
export const makeWholeFile = (path: string, text: string): void => {
  const file = openSync(path, "wx", 0o600);
  try {
    writeFileSync(file, text, { flush: true });
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
};
