/**
 * Espruino's timers, randomness and console as the core's ports. Plain objects over its globals: a
 * function that closes over another's variables costs a board twice as many.
 *
 * [portable]
 */
import type { Log, Random, TimerPort } from "../ports.ts";

declare const E: { hwRand(): number };
/** Seconds. */
declare const getTime: () => number;
declare const setTimeout: (fn: () => void, ms: number) => unknown;
declare const clearTimeout: (handle: unknown) => void;
declare const console: { log(text: string): void };

/** setTimeout with a clock that does not go back with `setTime`. */
export const boardTimer = {
  last: 0,
  lost: 0,
  now(): number {
    const clock = getTime() * 1000;
    if (clock < this.last) this.lost += this.last - clock;
    this.last = clock;
    return clock + this.lost;
  },
  set: (ms: number, fn: () => void): unknown => setTimeout(fn, ms),
  clear: (handle: unknown): void => {
    // clearTimeout(undefined) throws there.
    if (handle !== undefined && handle !== null) clearTimeout(handle);
  },
} satisfies TimerPort & { last: number; lost: number };

/**
 * `E.hwRand()` gives 32 bits; on Linux and, according to its source, on ESP32 the same after every
 * reset.
 */
export const boardRandom: Random = (length) => {
  const bytes = new Uint8Array(length);
  let held = 0;
  for (let i = 0; i < length; i++) {
    if ((i & 3) === 0) held = E.hwRand();
    bytes[i] = (held >>> ((i & 3) * 8)) & 255;
  }
  return bytes;
};

/** Warnings and errors on the console; a board has no room for more. */
export const boardLog: Log = (level, message, fields) => {
  if (level !== "warn" && level !== "error") return;
  const more = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
  console.log(`blindrelay ${level}: ${message}${more}`);
};
