/**
 * One look for all who ask at the same time, whose answer also serves those who ask shortly after:
 * asking often costs nothing and changes no answer.
 */

/** Shorter than anybody's interval between two checks. */
const REMEMBERED_MS = 200;

export const sharedLook = <T>(look: () => Promise<T>, nowMs: () => number): (() => Promise<T>) => {
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
    if (last !== null && nowMs() - last.atMs < REMEMBERED_MS) return last.answer;
    pending ??= ask();
    return pending;
  };
};
