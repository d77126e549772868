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

it("collects once for every 12 MiB read, after the turn", async () => {
  let collected = 0;
  const young = new YoungBuffers(() => {
    collected += 1;
  });
  const read = async (kib: number): Promise<number> => {
    const before = collected;
    for (let i = 0; i < kib; i++) young.add(1024);
    expect(collected).toBe(before);
    await nextTurn();
    return collected;
  };
  expect(await read(12 * 1024 - 1)).toBe(0);
  expect(await read(1)).toBe(1);
  expect(await read(2 * 12 * 1024)).toBe(3);
});

it("collects young objects, and no others", async () => {
  const forced: number[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind, flags } = (entry as unknown as { detail: GcDetail }).detail;
      if (flags === NODE_PERFORMANCE_GC_FLAGS_FORCED) forced.push(kind);
    }
  });
  observer.observe({ entryTypes: ["gc"] });
  onTestFinished(() => observer.disconnect());
  const young = new YoungBuffers();
  // Node reports no collection that runs inside another one, and each in a later turn.
  for (let tries = 0; forced.length === 0 && tries < 100; tries++) {
    young.add(12 * 1024 * 1024);
    for (let turns = 0; turns < 3; turns++) await nextTurn();
  }
  expect(new Set(forced)).toEqual(new Set([NODE_PERFORMANCE_GC_MINOR]));
});
