/** Stand-ins for modules of the Moddable SDK, with the limits of the platforms. */
import type { ModdableTime, ModdableTimer } from "../moddable/sdk.ts";

/** `timer`: delays are 32-bit integers there, and no fraction survives. */
export const fakeTimer: ModdableTimer = {
  set: (fn, ms = 0) => setTimeout(fn, ms | 0),
  clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
};

/** `time`, whose ticks are a wrapping 32-bit integer; they start shortly before they wrap. */
export const fakeTime = (now: () => number = () => performance.now()): ModdableTime => {
  const start = now();
  const ticks = (): number => (0x7ffffffb + Math.floor(now() - start)) | 0;
  return {
    get ticks() {
      return ticks();
    },
    delta: (since, until) => (until - since) | 0,
  };
};
