/**
 * The timers of a fleet. Each device has one that waits for minutes; with Node's own it would take
 * 200 bytes. So long waits end together, up to a tenth of a second late.
 */
import { systemTimer } from "@blindrelay/agent-sdk/node";
import type { TimerPort } from "@blindrelay/agent-sdk/ports";

const LONG_MS = 5_000;
const TOGETHER_MS = 100;

class Waiting {
  fn: (() => void) | null;

  constructor(fn: () => void) {
    this.fn = fn;
  }
}

export const fleetTimer = (): TimerPort => {
  const own = systemTimer();
  const ends = new Map<number, Waiting[]>();
  return {
    now: own.now,
    set(ms, fn) {
      if (ms < LONG_MS) return own.set(ms, fn);
      const endMs = Math.ceil((own.now() + ms) / TOGETHER_MS) * TOGETHER_MS;
      const others = ends.get(endMs);
      const waiting = new Waiting(fn);
      if (others !== undefined) {
        others.push(waiting);
        return waiting;
      }
      const all = [waiting];
      ends.set(endMs, all);
      own.set(endMs - own.now(), () => {
        ends.delete(endMs);
        for (const one of all) one.fn?.();
      });
      return waiting;
    },
    clear(handle) {
      if (handle instanceof Waiting) handle.fn = null;
      else own.clear(handle);
    },
  };
};
