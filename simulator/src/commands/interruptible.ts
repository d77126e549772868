/** What a command does when its user interrupts it. */
import { EXIT } from "@blindrelay/protocol/command-line";

/** Ctrl-C ends `go`; a second one, at least a second later, ends the process at once. */
export async function interruptible(go: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const stop = new AbortController();
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  let at = 0;
  const interrupt = (name: NodeJS.Signals): void => {
    if (stop.signal.aborted && performance.now() - at > 1000) process.exit(EXIT.interrupted);
    if (!stop.signal.aborted) at = performance.now();
    stop.abort(new Error(`interrupted by ${name}`));
  };
  for (const name of names) process.on(name, interrupt);
  try {
    return await go(stop.signal);
  } finally {
    for (const name of names) process.off(name, interrupt);
  }
}

export function interrupted(): number {
  console.error("blindrelay-sim: interrupted");
  return EXIT.interrupted;
}
