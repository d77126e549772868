/** Runs in XS, in place of the SDK's `timer`. */
import { ask, hear } from "./bridge.ts";

const pending = new Map<number, () => void>();
let last = 0;

hear("fire", ({ id }) => {
  const fn = pending.get(id);
  pending.delete(id);
  fn?.();
});

const set = (fn: () => void, ms?: number): number => {
  last++;
  pending.set(last, fn);
  ask({ op: "set", id: last, ms: (ms ?? 0) | 0 });
  return last;
};

const clear = (handle: unknown): void => {
  const id = handle as number;
  if (pending.delete(id)) ask({ op: "clear", id });
};

export default { set, clear };
