/**
 * For programs that are run by hand: everything that they started ends with them, whether they
 * finish, fail or are stopped.
 */
import { rmSync } from "node:fs";
import { constants } from "node:os";
import { watchChildProcesses } from "./child-processes.ts";
import reap from "./reaper.ts";

export interface CleanUp {
  /** What `end` runs, the last first; processes that remain are killed afterwards. */
  readonly undo: (() => unknown)[];
  /** Whether that has begun: what fails from then on means nothing. */
  readonly ending: boolean;
  /** Undoes everything, removes the folders and exits. */
  end(code: number): Promise<void>;
}

export const cleanUp = (...folders: string[]): CleanUp => {
  const killAll = reap();
  watchChildProcesses(); // what gets an environment of its own, such as commands
  const undo: (() => unknown)[] = [];
  let ending = false;
  const end = async (code: number): Promise<void> => {
    if (ending) return;
    ending = true;
    // What fails has already ended, or is about to be killed.
    for (const each of undo.reverse()) await Promise.try(each).catch(() => undefined);
    await killAll();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    process.exit(code);
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => end(128 + constants.signals[name]));
  }
  process.on("uncaughtException", (error) => {
    if (!ending) console.error(error); // later ones result from the clean-up
    void end(1);
  });
  return {
    undo,
    end,
    get ending() {
      return ending;
    },
  };
};
