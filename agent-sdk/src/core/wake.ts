/**
 * An agent that sleeps most of the time, on a board that restarts at each wake: it logs in with its
 * stored session token, answers waiting calls, and ends when no more messages arrive. A wake is a
 * start, so the boot count is raised, and no session survives it (section 2).
 *
 * [portable]
 */
import type { StoragePort } from "../ports.ts";
import type { AgentCore } from "./agent-core.ts";

const SESSION_FILE = "session";
/** Stored in place of a refused token. */
const NO_SESSION = "none";

/** The form of a session token; nothing longer is stored, whatever a relay sends. */
const isSessionToken = (text: string): boolean =>
  text.substring(0, 5) === "sess_" && text.length === 54;

interface WakeTiming {
  /** The wake ends after this many milliseconds without a message. */
  readonly idleMs: number;
  /** The wake ends after this many milliseconds in any case. */
  readonly awakeMs: number;
}

/**
 * Lets the agent log in with the session token of the previous wake, and stores each new one: one
 * write a day, as long as the relay keeps its promise. A refused one is removed at once, or every
 * wake would offer it again. Call it before `start`.
 */
export const keepSession = (core: AgentCore, storage: StoragePort): void => {
  const link = core.link;
  const stored = storage.read(SESSION_FILE);
  let held = stored !== null && isSessionToken(stored) ? stored : null;
  if (held !== null) link.resumeSession(held);
  link.onState(() => {
    const token = link.heldSession();
    if (token === held) return;
    held = token;
    if (token === null) storage.write(SESSION_FILE, NO_SESSION);
    else if (isSessionToken(token)) storage.write(SESSION_FILE, token);
  });
};

/** Milliseconds until the next check; 0 or less: the wake is over. */
const wakeLeft = (core: AgentCore, timing: WakeTiming, awakeMs: number): number => {
  const left = timing.awakeMs - awakeMs;
  const status = core.link.status;
  if (status.state === "refused") return 0;
  // The wait would be longer than the wake, so it sleeps at once.
  if (status.waitMs !== null && status.waitMs >= left) return 0;
  const busy = status.state !== "online" || core.dispatcher.inFlight() > 0;
  return Math.min(left, busy ? timing.idleMs : timing.idleMs - core.link.quietMs());
};

/** Calls `over` at the end of the wake; never while `isHeld`. Call it before `start`. */
export const watchWake = (
  core: AgentCore,
  timing: WakeTiming,
  isHeld: () => boolean,
  over: () => void,
): void => {
  const timer = core.ports.timer;
  const since = timer.now();
  const look = (): void => {
    if (core.link.state === "stopped") return;
    const left = isHeld() ? timing.idleMs : wakeLeft(core, timing, timer.now() - since);
    if (left > 0) timer.set(left, look);
    else over();
  };
  timer.set(timing.idleMs, look);
};
