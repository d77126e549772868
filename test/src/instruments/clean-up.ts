/**
 * For what is run by hand: what it has started ends with it, whether it is done, fails or is ended.
 */
import { rmSync } from "node:fs";
import { constants } from "node:os";
import reap from "./reaper.ts";

export interface CleanUp {
  /** What `end` does, the last first; processes that are left are killed after it. */
  readonly undo: (() => unknown)[];
  /** Undoes all, removes the folders and exits. */
  end(code: number): Promise<void>;
}

export const cleanUp = (...folders: string[]): CleanUp => {
  const killAll = reap();
  const undo: (() => unknown)[] = [];
  let ending = false;
  const end = async (code: number): Promise<void> => {
    if (ending) return;
    ending = true;
    // What fails is over already, or about to be killed.
    for (const each of undo.reverse()) await Promise.try(each).catch(() => undefined);
    await killAll();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    process.exit(code);
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => end(128 + constants.signals[name]));
  }
  process.on("uncaughtException", (error) => {
    if (!ending) console.error(error); // later ones are of what is undone
    void end(1);
  });
  return { undo, end };
};
