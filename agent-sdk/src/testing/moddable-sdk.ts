/** Stand-ins for modules of the Moddable SDK, with the platforms' limits. */
import type { MemoryPreference } from "../engines/preference.ts";
import type { ModdableTime, ModdableTimer, ModdableValues } from "../moddable/sdk.ts";

/** `timer`: delays are 32-bit integers there; fractions are dropped. */
export const fakeTimer: ModdableTimer = {
  set: (fn, ms = 0) => setTimeout(fn, ms | 0),
  clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
};

/** `time`: its ticks are a 32-bit integer that wraps, and start shortly before it does. */
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

/** `blindrelay/values` over preferences, as moddable/values-preference.js. */
export const valuesOf = (preference: MemoryPreference): ModdableValues => ({
  read: (key) => preference.get("blindrelay", key),
  write: (key, value) => preference.set("blindrelay", key, value),
});
