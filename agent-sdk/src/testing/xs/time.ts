/** Runs in XS, in place of the SDK's `time`. */
import { ask } from "./bridge.ts";

const ticks = (): number => ask({ op: "ticks" }) as number;

export default {
  get ticks(): number {
    return ticks();
  },
  delta: (start: number, end: number): number => (end - start) | 0,
};
