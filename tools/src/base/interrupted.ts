/** SIGINT, SIGTERM and hang-ups, for commands that run until the first of them. */

import { Failure } from "@blindrelay/protocol/command-line";
import { printStatus } from "./output.ts";

let isOver = false;

/**
 * A terminal that is closed ends what runs on it. Elsewhere a hang-up is ignored, as `nohup` asks
 * for: Node undoes that at its start.
 */
export const endSignals = (): readonly NodeJS.Signals[] => {
  for (const signal of ["SIGINT", "SIGTERM"]) process.removeAllListeners(signal);
  if (process.stderr.isTTY) return ["SIGINT", "SIGTERM", "SIGHUP"];
  process.on("SIGHUP", () => undefined);
  return ["SIGINT", "SIGTERM"];
};

let first: Promise<void> | undefined;

/**
 * Resolves at the first of them. Listened for once: a signal that has come, and that Node has not
 * told yet, is lost when its listeners are replaced.
 */
export const interrupted = (): Promise<void> => {
  first ??= new Promise((resolve) => {
    for (const signal of endSignals()) {
      process.once(signal, () => {
        isOver = true;
        resolve();
      });
    }
  });
  return first;
};

/** Whether a signal has ended the command. */
export const wasInterrupted = (): boolean => isOver;

/** Rejects at the first of them, with a Failure (interrupted) that says what is left then. */
export const rejectOnInterrupt = (left: () => string): Promise<never> =>
  interrupted().then(() => {
    throw new Failure("interrupted", `interrupted: ${left()}`);
  });

/** Aborts at the first of them, so that what has begun is completed; a second one ends at once. */
export const abortOnInterrupt = (says: string): AbortSignal => {
  const stop = new AbortController();
  interrupted().then(() => {
    stop.abort();
    printStatus(`${says}; Ctrl-C again ends at once`);
    process.once("SIGINT", () => process.exit(1));
  });
  return stop.signal;
};
