/** Writes files that hold secrets or what a person has added: never in part. */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { Failure } from "@blindrelay/protocol/command-line";

export const cannotWrite = (path: string, error: unknown): Failure =>
  new Failure("usage", `cannot write ${path}: ${(error as Error).message}`, error);

/**
 * Writes a file of mode 0600 that is whole or as it was, however the command ends. Throws a Failure
 * (usage).
 */
export const writeWholeFile = (path: string, text: string): void => {
  const fresh = `${path}.${process.pid}.new`;
  try {
    writeFileSync(fresh, text, { mode: 0o600, flush: true });
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw cannotWrite(path, error);
  }
};
