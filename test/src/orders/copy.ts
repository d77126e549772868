/**
 * Copies of a session's object, and its state as a text. Both take whatever members there are, so
 * that one that is added is copied and compared, too.
 */

/** Never changed once it is made. */
const SHARED = new Set(["suite", "limits", "timings", "prk", "keys"]);
/** No future depends on these, or all worlds of a search have the same. */
const NO_STATE = new Set([...SHARED, "counters", "lapsed", "buckets", "random", "version"]);

export const copyOf = <T>(value: T): T => copyAny(value) as T;

const copyAny = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyAny);
  if (value instanceof Uint8Array) return value.slice();
  const copy = Object.create(Object.getPrototypeOf(value));
  for (const [name, member] of Object.entries(value)) {
    copy[name] = SHARED.has(name) ? member : copyAny(member);
  }
  return copy;
};

export const textOfState = (value: unknown): string => {
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(textOfState).join()}]`;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("latin1");
  const members = Object.entries(value).filter(([name]) => !NO_STATE.has(name));
  return `{${members.map(([, member]) => textOfState(member)).join()}}`;
};
