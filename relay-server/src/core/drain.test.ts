/** How a drain spreads the peers of one node of several, which keep their links meanwhile. */
import { expect, test } from "vitest";
import type { Connection } from "./connection.ts";
import { Drain } from "./drain.ts";
import { HELD_LINK_MS, TICK_MS } from "./limits.ts";

/** What the process waits for at most: server.ts. */
const MOVE_TIMEOUT_MS = 27_000;

/** When each peer comes back, and when the last link is closed at the latest. */
const drained = (peers: number) => {
  const connections = Array.from({ length: peers }, () => ({ state: "online", peer: {} }));
  const drain = new Drain(new Set(connections as unknown as Connection[]), true);
  const comeAt: number[] = [];
  let closedAt = 0;
  for (let now = 0; now <= 2 * MOVE_TIMEOUT_MS; now += TICK_MS) {
    drain.tick(now, {
      tell: (_, inS) => comeAt.push(now + inS * 1000),
      restart: () => expect.unreachable("every link is held"),
      close: () => {
        closedAt = now;
      },
    });
  }
  return { drain, comeAt, closedAt };
};

const most = (comeAt: readonly number[], withinMs: number): number => {
  const counts = new Map<number, number>();
  for (const at of comeAt) {
    const slot = Math.floor(at / withinMs);
    counts.set(slot, (counts.get(slot) ?? 0) + 1);
  }
  return Math.max(...counts.values());
};

test("a thousand peers come back at a hundred a second, and not all at the full second", () => {
  const { comeAt } = drained(1000);
  expect(comeAt).toHaveLength(1000);
  expect(Math.min(...comeAt)).toBeGreaterThanOrEqual(1000);
  expect(most(comeAt, 1000)).toBeLessThan(120);
  expect(most(comeAt, 100)).toBeLessThan(20);
});

test("50,000 peers come back before the process ends, and their links are closed by then", () => {
  const { comeAt, closedAt } = drained(50_000);
  expect(comeAt).toHaveLength(50_000);
  expect(Math.max(...comeAt)).toBeLessThanOrEqual(MOVE_TIMEOUT_MS - HELD_LINK_MS);
  expect(closedAt).toBeLessThanOrEqual(MOVE_TIMEOUT_MS);
});

test("a peer that has connected to a node on its way out need not wait: others have room", () => {
  expect(drained(1000).drain.newcomerReconnectInS()).toBe(1);
});
