/** Writes files that hold secrets or what a person has added: never in part. */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { failing } from "./failing.ts";

/** What `step` returns. Throws a Failure (usage) that names the path. */
export const writing = <T>(path: string, step: () => T): T =>
  failing("usage", `cannot write ${path}: `, step);

/**
 * Writes a file of mode 0600 that is whole or as it was, however the command ends. Throws a Failure
 * (usage).
 */
export const writeWholeFile = (path: string, text: string): void => {
  const fresh = `${path}.${process.pid}.new`;
  writing(path, () => {
    try {
      writeFileSync(fresh, text, { mode: 0o600, flush: true });
      renameSync(fresh, path);
    } catch (error) {
      rmSync(fresh, { force: true });
      throw error;
    }
  });
};
