/** Changes that faults make to values for a limited time, in both worlds. */

/** The active changes of an object, latest last; first the original values. */
const overlays = new WeakMap<object, object[]>();

/**
 * Changes values until the returned function is called. If such changes overlap, the latest active
 * one counts.
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
