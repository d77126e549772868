/**
 * One look for all who ask at the same time, and a few in a second: those who ask more often share
 * the last answer, which is 200 ms old at most. Asking often costs nothing and makes no answer
 * wrong, and whoever asks seldom gets its own look.
 */
import { RateBucket } from "./core/limits/rate-limit.ts";

const LOOKS_PER_SECOND = 10;
/** Looks at once after a pause: more than all balancers and scrapers begin in a moment. */
const LOOKS_AT_ONCE = 20;
const REMEMBERED_MS = 200;

export const sharedLook = <T>(look: () => Promise<T>, nowMs: () => number): (() => Promise<T>) => {
  const budget = new RateBucket(LOOKS_AT_ONCE, nowMs());
  let pending: Promise<T> | null = null;
  let last: { readonly answer: T; readonly atMs: number } | null = null;
  const ask = async (): Promise<T> => {
    try {
      const answer = await look();
      last = { answer, atMs: nowMs() };
      return answer;
    } finally {
      pending = null;
    }
  };
  return async () => {
    if (pending !== null) return pending;
    const now = nowMs();
    const mayLook = budget.take(LOOKS_PER_SECOND, LOOKS_AT_ONCE, now);
    if (!mayLook && last !== null && now - last.atMs < REMEMBERED_MS) return last.answer;
    pending = ask();
    return pending;
  };
};
