/**
 * The time that has passed, also while the machine slept. A monotonic clock may stand still then
 * (CLOCK_MONOTONIC on Linux does), and a wall clock may be set. So the first counts, and where the
 * second has gained more than a few seconds on it since they were last compared, that counts too:
 * whoever mistakes a set clock for a sleep only believes a session to be older than it is.
 */

import type { TimerPort } from "./ports.ts";

/** More than clocks drift apart, or are corrected by, between two looks. */
const SLEPT_MS = 5000;

export interface ElapsedClock {
  /** Milliseconds with an arbitrary zero; never decreases. */
  now(): number;
  /** How much of that only the wall clock has counted: sleep, or a clock that was set. */
  leapt(): number;
}

export const elapsedClock = (monotonic: () => number, wall: () => number): ElapsedClock => {
  let leapt = 0;
  let apart = wall() - monotonic();
  return {
    now() {
      const steady = monotonic();
      const gained = wall() - steady - apart;
      apart += gained;
      if (gained > SLEPT_MS) leapt += gained;
      return steady + leapt;
    },
    leapt: () => leapt,
  };
};

/** setTimeout fires at once for anything longer. */
const LONGEST_MS = 2147483647;

interface Handle {
  timeout?: ReturnType<typeof setTimeout>;
}

const arm = (handle: Handle, ms: number, fn: () => void): void => {
  handle.timeout =
    ms <= LONGEST_MS
      ? setTimeout(fn, ms)
      : setTimeout(() => arm(handle, ms - LONGEST_MS, fn), LONGEST_MS);
};

/**
 * The TimerPort of Node and of browsers: a clock that counts a laptop's sleep too, and setTimeout,
 * extended beyond 24.8 days.
 */
export const systemTimer = (): TimerPort => ({
  ...elapsedClock(
    () => performance.now(),
    () => Date.now(),
  ),
  set(ms, fn) {
    const handle: Handle = {};
    // One more: setTimeout may fire up to a millisecond early.
    arm(handle, Math.ceil(ms) + 1, fn);
    return handle;
  },
  clear: (handle) => clearTimeout((handle as Handle | null)?.timeout),
});
