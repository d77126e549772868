/**
 * Wait times with jitter, so that a thousand clients of a restarted relay do not reconnect at once,
 * and numbers drawn from the random port.
 */
import type { Random } from "../ports.ts";

/** A number from 0 (inclusive) to 1 (exclusive) with 32 random bits. */
export const randomFraction = (random: Random): number => {
  let value = 0;
  for (const byte of random(4)) value = value * 256 + byte;
  return value / 2 ** 32;
};

/** Between half and all of `baseMs * 2^attempt`, at most `ceilingMs`. `attempt` counts from 0. */
export const backoffMs = (
  random: Random,
  attempt: number,
  baseMs: number,
  ceilingMs: number,
): number => {
  const whole = Math.min(ceilingMs, baseMs * 2 ** Math.min(attempt, 30));
  return Math.round(whole * (0.5 + randomFraction(random) / 2));
};
