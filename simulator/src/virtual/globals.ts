/**
 * The globals of a virtual world: clock, timers and randomness of the device that currently runs.
 */
import { makeDate } from "./dates.ts";
import type { Globals } from "./program.ts";

/** The device whose code is running. */
export interface Running {
  /** Its wall clock, in Unix milliseconds. */
  wallMs(): number;
  /** Its monotonic clock, in milliseconds. */
  monotonicMs(): number;
  setTimer(ms: number, fn: () => void, again: boolean): unknown;
  clearTimer(handle: unknown): void;
  randomFraction(): number;
  randomBytes(length: number): Uint8Array;
  print(level: "debug" | "info" | "warn" | "error", text: string): void;
}

/** On Node a longer timer fires at once; `agent.after` has no such limit. */
const LONGEST_MS = 2_147_483_647;

/** `timeZone`: that of their local time. */
export const makeGlobals = (current: () => Running, timeZone = "UTC"): Globals => {
  const later =
    (again: boolean) =>
    (fn: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): unknown => {
      const asked = Number(ms) || 0;
      return current().setTimer(asked > LONGEST_MS ? 0 : asked, () => fn(...args), again);
    };
  const clear = (handle: unknown): void => current().clearTimer(handle);
  const print =
    (level: "debug" | "info" | "warn" | "error") =>
    (...parts: unknown[]): void =>
      current().print(level, parts.map(String).join(" "));
  return {
    Date: makeDate(() => Math.floor(current().wallMs()), timeZone),
    Math: Object.create(Math, { random: { value: () => current().randomFraction() } }),
    setTimeout: later(false),
    setInterval: later(true),
    setImmediate: (fn: () => void) => current().setTimer(0, fn, false),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
    crypto: {
      getRandomValues<T extends ArrayBufferView>(array: T): T {
        const { buffer, byteOffset, byteLength } = array;
        new Uint8Array(buffer, byteOffset, byteLength).set(current().randomBytes(byteLength));
        return array;
      },
      randomUUID(): string {
        const bytes = current().randomBytes(16);
        bytes[6] = ((bytes[6] as number) & 15) | 64;
        bytes[8] = ((bytes[8] as number) & 63) | 128;
        const hex = Buffer.from(bytes).toString("hex");
        return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
      },
    },
    performance: { now: () => current().monotonicMs(), timeOrigin: 0 },
    console: {
      log: print("info"),
      info: print("info"),
      debug: print("debug"),
      warn: print("warn"),
      error: print("error"),
    },
  };
};
