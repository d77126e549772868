/**
 * Why `agent run --allow-push` needs two processes: one runs the agent, and this one restarts it
 * when it asks for that (a program was pushed, or failed its trial), exits, or hangs. When only a
 * person can help, both end.
 */
import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";
import { EXIT } from "@blindrelay/protocol/command-line";
import { endSignals } from "../base/interrupted.ts";
import { printStatus } from "../base/output.ts";

/** Set in the environment of the process that runs the agent. */
const MARK = "BLINDRELAY_SUPERVISED";
/** The exit code by which it asks to be restarted. */
const RESTART = 75;
const BEAT_MS = 1_000;
/** Seconds without a beat after which it counts as hanging; as long as a board's watchdog waits. */
const SILENT_BEATS = 25;
const STOP_LIMIT_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** A run of this length does not count as a failed start. */
const STABLE_MS = 60_000;
const NEEDS_A_PERSON: readonly (number | null)[] = [EXIT.usage, EXIT.refused, EXIT.device];

/** Call it once: whether this process is the one that runs the agent. */
export const isSupervised = (): boolean => {
  const marked = process.env[MARK] !== undefined && process.send !== undefined;
  // Not inherited by what the program starts.
  delete process.env[MARK];
  return marked;
};

/** Tells the supervisor that this process is not hanging; resolves when the supervisor is gone. */
export const reportAlive = (): Promise<void> => {
  setInterval(() => process.send?.("beat"), BEAT_MS).unref();
  return new Promise((resolve) => {
    process.once("disconnect", () => resolve());
  });
};

/** Ends this process so that another one is started. */
export const askForRestart = (): never => process.exit(RESTART);

export interface Supervised {
  /** The command line of `blindrelay` that runs the agent, and its environment. */
  readonly args: readonly string[];
  /** Added to this process's own; undefined removes a variable. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The process has ended: whether that ended a trial, so that another program must be started. */
  ended(reason: string): Promise<boolean>;
}

interface End {
  readonly code: number | null;
  readonly reason: string;
}

/**
 * Runs until a signal ends it, or until a person is needed; then returns the exit code, which the
 * agent's process has explained.
 */
export const supervise = async ({ args, env, ended }: Supervised): Promise<number> => {
  let child: ChildProcess | null = null;
  const stop = new AbortController();
  const onSignal = (): void => {
    if (stop.signal.aborted) return;
    stop.abort();
    child?.kill("SIGTERM");
    setTimeout(() => child?.kill("SIGKILL"), STOP_LIMIT_MS).unref();
  };
  for (const signal of endSignals()) process.on(signal, onSignal);
  let pause = FIRST_PAUSE_MS;
  for (;;) {
    const bornAt = performance.now();
    const { code, reason } = await endOf(() => {
      const given = { env: { ...process.env, ...env, [MARK]: "1" } };
      child = fork(process.argv[1] as string, args, given);
      return child;
    });
    if (stop.signal.aborted) return 0;
    const isNext = await ended(reason);
    if (!isNext && NEEDS_A_PERSON.includes(code)) return code as number;
    if (code !== RESTART) printStatus(`the agent's process ended: ${reason}`);
    const isStable = performance.now() - bornAt > STABLE_MS;
    if (isNext || isStable || code === RESTART) pause = FIRST_PAUSE_MS;
    // Never without a pause: a program may exit with any code.
    await wait(pause, null, { signal: stop.signal }).catch(() => undefined);
    if (stop.signal.aborted) return 0;
    pause = Math.min(pause * 2, MAX_PAUSE_MS);
  }
};

/** A machine may have no room for another process for now, which Node throws or emits. */
const endOf = (begin: () => ChildProcess): Promise<End> =>
  new Promise<End>((resolve) => {
    const child = begin();
    let silent = 0;
    let hung = false;
    // Counted, not measured: a machine that was suspended has missed no beat.
    const watch = setInterval(() => {
      silent++;
      if (silent <= SILENT_BEATS) return;
      hung = true;
      child.kill("SIGKILL");
    }, BEAT_MS);
    child.on("message", () => {
      silent = 0;
    });
    child.on("error", ({ message }) => {
      if (child.pid !== undefined) return;
      clearInterval(watch);
      resolve({ code: null, reason: message });
    });
    child.once("exit", (code, signal) => {
      clearInterval(watch);
      if (code === RESTART) resolve({ code, reason: "it restarted before it was confirmed" });
      else if (hung) resolve({ code, reason: `it did not respond for ${SILENT_BEATS} s` });
      else if (signal === "SIGABRT") resolve({ code, reason: "SIGABRT, as out of memory" });
      else resolve({ code, reason: signal === null ? `exit code ${code}` : `${signal}` });
    });
  }).catch(({ message }: Error) => ({ code: null, reason: message }));
