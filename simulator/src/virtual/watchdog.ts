/**
 * A device program that never returns would keep everything of its thread waiting, Ctrl-C and the
 * hard stop too. So another thread watches that of a virtual run.
 */
import { once } from "node:events";
import { url as debuggerUrl } from "node:inspector";
import { extname, join } from "node:path";
import { isMainThread, Worker } from "node:worker_threads";

/** What the thread is given. */
export interface Watch {
  /** Counts the turns of the event loop; 0 until there is something to watch. */
  turns: Int32Array;
  /** 1 once the thread has ended what did not return. */
  ended: Int32Array;
  limitMs: number;
  /** The device programs, as their places name them. */
  programs: readonly string[];
}

export interface Watchdog {
  /**
   * Resolves the next time that the run's thread does not turn for too long, and says so with the
   * innermost place in one of `programs`. What it was running is gone, without its `finally`.
   */
  stuck(): Promise<string>;
  /** Whether `stuck` will resolve: the task that was ended may go on before it does. */
  isStuck(): boolean;
  stop(): void;
}

/** Many times what the largest fleet takes between two turns. */
export const STUCK_MS = 30_000;
const TURN_MS = 50;

/** Resolves once it watches; a thread that starts needs the one that started it. */
export async function startWatchdog(
  programs: readonly string[],
  limitMs: number,
): Promise<Watchdog | null> {
  // It reaches the main thread only. Who debugs a program stops it for as long as they think.
  if (!isMainThread || debuggerUrl() !== undefined) return null;
  const turns = new Int32Array(new SharedArrayBuffer(4));
  const thread = join(import.meta.dirname, `watchdog-thread${extname(import.meta.filename)}`);
  const ended = new Int32Array(new SharedArrayBuffer(4));
  const given: Watch = { turns, ended, limitMs, programs };
  const worker = new Worker(thread, { workerData: given, execArgv: [] });
  await once(worker, "message");
  worker.unref();
  Atomics.add(turns, 0, 1);
  const turning = setInterval(() => Atomics.add(turns, 0, 1), TURN_MS);
  let tell = (_: string): void => undefined;
  worker.on("message", (place: string) => {
    tell(`${place} did not return within ${limitMs / 1000} s of CPU time`);
  });
  return {
    stuck: () =>
      new Promise((resolve) => {
        Atomics.store(ended, 0, 0);
        tell = resolve;
      }),
    isStuck: () => Atomics.load(ended, 0) === 1,
    stop() {
      clearInterval(turning);
      worker.postMessage("over");
    },
  };
}
