/** Moddable's timers and ticks as the core's timer port. */
import type { TimerPort } from "../ports.ts";
import type { ModdableTime, ModdableTimer } from "./sdk.ts";

/** Delays become 32-bit integers there; a longer wait is split. */
const LONGEST_MS = 2 ** 30;

interface Pending {
  native: unknown;
  live: boolean;
}

export const moddableTimer = (timer: ModdableTimer, time: ModdableTime): TimerPort => {
  // Ticks wrap every 49 days on microcontrollers, and on Linux they follow a clock that may be set
  // back.
  let lastTicks = time.ticks;
  let elapsed = 0;
  const now = (): number => {
    const ticks = time.ticks;
    const step = time.delta(lastTicks, ticks);
    lastTicks = ticks;
    if (step > 0) elapsed += step;
    return elapsed;
  };
  return {
    now,
    set: (ms, fn) => {
      const end = now() + ms;
      const pending: Pending = { native: null, live: true };
      const wait = (): void => {
        const left = Math.ceil(Math.max(0, end - now()));
        pending.native = timer.set(
          () => {
            if (!pending.live) return;
            if (now() < end) wait();
            else {
              pending.live = false;
              fn();
            }
          },
          Math.min(left, LONGEST_MS),
        );
      };
      wait();
      return pending;
    },
    clear: (handle) => {
      const pending = handle as Pending | null | undefined;
      if (!pending?.live) return;
      pending.live = false;
      timer.clear(pending.native);
    },
  };
};
