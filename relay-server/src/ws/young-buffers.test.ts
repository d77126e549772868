import { constants, PerformanceObserver } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { YoungBuffers } from "./young-buffers.ts";

/** Missing from node's types. */
interface GcDetail {
  readonly kind: number;
  readonly flags: number;
}

const { NODE_PERFORMANCE_GC_MINOR, NODE_PERFORMANCE_GC_FLAGS_FORCED } = constants;

it("collects young objects once for every 12 MiB read, after the turn", async () => {
  let forced = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind, flags } = (entry as unknown as { detail: GcDetail }).detail;
      if (kind === NODE_PERFORMANCE_GC_MINOR && flags === NODE_PERFORMANCE_GC_FLAGS_FORCED) {
        forced += 1;
      }
    }
  });
  observer.observe({ entryTypes: ["gc"] });
  onTestFinished(() => observer.disconnect());
  const young = new YoungBuffers();
  const read = async (kib: number): Promise<void> => {
    for (let i = 0; i < kib; i++) young.add(1024);
    for (let i = 0; i < 3; i++) await nextTurn(); // the observer is called in a later turn
  };
  await read(12 * 1024 - 1);
  expect(forced).toBe(0);
  await read(1);
  expect(forced).toBe(1);
  await read(2 * 12 * 1024);
  expect(forced).toBe(3);
});
