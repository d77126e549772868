/**
 * The TimerPort on Node: a clock that counts a laptop's sleep too, and setTimeout, extended beyond
 * 24.8 days.
 */
import { elapsedClock } from "@blindrelay/protocol/elapsed-clock";
import type { TimerPort } from "../ports.ts";

/** setTimeout fires at once for anything longer. */
const LONGEST_MS = 2147483647;

interface Handle {
  timeout: NodeJS.Timeout;
}

const arm = (handle: Partial<Handle>, ms: number, fn: () => void): void => {
  handle.timeout =
    ms <= LONGEST_MS
      ? setTimeout(fn, ms)
      : setTimeout(() => arm(handle, ms - LONGEST_MS, fn), LONGEST_MS);
};

export const systemTimer = (): TimerPort => ({
  ...elapsedClock(
    () => performance.now(),
    () => Date.now(),
  ),
  set(ms, fn) {
    const handle: Partial<Handle> = {};
    // One more: setTimeout may fire up to a millisecond early.
    arm(handle, Math.ceil(ms) + 1, fn);
    return handle;
  },
  clear(handle) {
    clearTimeout((handle as Handle | null)?.timeout);
  },
});
