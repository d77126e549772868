/** Values that faults change for a limited time, in both worlds. */

/** What faults that are on have changed of an object, latest last; first what was there before. */
const overlays = new WeakMap<object, object[]>();

/**
 * Changes values for a while; the result ends that. Where such changes overlap, the latest that is
 * still on counts.
 */
export const overlay = <T extends object>(target: T | null, change: Partial<T>): (() => void) => {
  if (target === null) return () => undefined;
  const [original = {}, ...on] = overlays.get(target) ?? [];
  const untouched = Object.keys(change).filter((key) => !(key in original));
  const before = Object.fromEntries(untouched.map((key) => [key, target[key as keyof T]]));
  overlays.set(target, [{ ...original, ...before }, ...on, change]);
  Object.assign(target, change);
  return () => {
    const left = (overlays.get(target) ?? []).filter((one) => one !== change);
    overlays.set(target, left);
    Object.assign(target, ...left);
  };
};
