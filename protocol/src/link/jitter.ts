/**
 * Wait times with jitter, so that a thousand devices or clients of a restarted relay do not
 * reconnect at once.
 *
 * [portable]
 */
import type { Random } from "../ports.ts";

/** `first * 2^times`, at most `max`. No shifts: their counts wrap at 32. */
export const doubled = (first: number, times: number, max: number): number => {
  let value = first;
  for (let i = 0; i < times && value < max; i++) value *= 2;
  return Math.min(value, max);
};

/**
 * From 0 (inclusive) to 1 (exclusive). `offset`: a number below 2^32 that differs between devices
 * whose randomness may not.
 */
export const randomFraction = (random: Random, offset: number): number => {
  const bytes = random(4);
  let value = 0;
  for (let i = 0; i < 4; i++) value = value * 256 + (bytes[i] as number);
  return ((value + offset) % 4294967296) / 4294967296;
};

/** `wait`, less a part of up to half of it. */
export const jittered = (wait: number, fraction: number): number =>
  wait - Math.floor((wait / 2) * fraction);
