/** The first SIGINT or SIGTERM, for commands that run until then. */

let isOver = false;

/** Resolves at the first of both. */
export const interrupted = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => {
        isOver = true;
        resolve();
      });
    }
  });

/** Whether a signal has ended the command. */
export const wasInterrupted = (): boolean => isOver;
