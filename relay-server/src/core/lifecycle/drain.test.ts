/** How a drain staggers the peers of a cluster node, which keep their links meanwhile. */
import { describe, expect, test } from "vitest";
import type { Connection } from "../connections/connection.ts";
import type { Leaving } from "../connections/leaving.ts";
import { ANSWERS_MS, MAX_HELD_LINK_MS, MIN_HELD_LINK_MS, TICK_MS } from "../limits/limits.ts";
import { Drain, shortestMoveMs } from "./drain.ts";

/** The longest time that the process waits: server.ts. */
const MOVE_TIMEOUT_MS = 27_000;

/** When each peer reconnects, and when the last link is closed at the latest. */
const drained = (peers: number, leftMs = MOVE_TIMEOUT_MS) => {
  const connections = Array.from({ length: peers }, () => ({
    state: "online",
    peer: { role: "agent" },
    leaving: null,
  }));
  const drain = new Drain(new Set(connections as unknown as Connection[]), true, leftMs);
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

test.each([100, 1000])(
  "no more than a tenth of %i peers reconnect in one second, and not all at full seconds",
  (peers) => {
    const { comeAt } = drained(peers);
    expect(comeAt).toHaveLength(peers);
    expect(Math.min(...comeAt)).toBeGreaterThanOrEqual(1000);
    expect(most(comeAt, 1000)).toBeLessThanOrEqual(peers / 10);
    expect(most(comeAt, 100)).toBeLessThanOrEqual(peers / 50);
  },
);

test.each([20, 1000, 50_000])(
  "%i peers of a node that is short of time move as fast as they may, and end within it",
  (peers) => {
    const leftMs = shortestMoveMs(peers);
    const { comeAt, closedAt } = drained(peers, leftMs);
    expect(comeAt).toHaveLength(peers);
    expect(closedAt).toBeLessThanOrEqual(leftMs - ANSWERS_MS);
    const calm = drained(peers);
    expect(closedAt).toBeLessThan(calm.closedAt);
    expect(Math.max(...comeAt)).toBeLessThanOrEqual(Math.max(...calm.comeAt));
  },
);

test("50,000 peers reconnect before the process ends, and their links are closed by then", () => {
  const { comeAt, closedAt } = drained(50_000);
  expect(comeAt).toHaveLength(50_000);
  expect(Math.max(...comeAt)).toBeLessThanOrEqual(MOVE_TIMEOUT_MS - MAX_HELD_LINK_MS - ANSWERS_MS);
  expect(closedAt).toBeLessThanOrEqual(MOVE_TIMEOUT_MS - ANSWERS_MS);
});

test("a peer that connects to a draining node need not wait if another node is ready, and is spread otherwise", () => {
  const { drain } = drained(1000);
  expect(drain.newcomerReconnectInS(true)).toBe(1);
  const waits = Array.from({ length: 100 }, () => 1000 * drain.newcomerReconnectInS(false));
  expect(most(waits, 1000)).toBeLessThan(15);
});

describe("the link of an agent that stays until it is closed", () => {
  const asked = { sid: "C.A", requestId: null };
  const opening = { sid: "C", requestId: "r" };
  const other = { sid: null, requestId: "r" };

  /** Ticks until the link is closed; `act` is called before each tick, with the time overdue. */
  const closedAfter = (act: (leaving: Leaving, overdueMs: number) => void): number => {
    const agent = { state: "online", peer: { role: "agent" }, leaving: null as Leaving | null };
    const drain = new Drain(new Set([agent as unknown as Connection]), true);
    let overdueAt = 0;
    let closedAt: number | null = null;
    for (let now = 0; closedAt === null; now += TICK_MS) {
      if (agent.leaving !== null) act(agent.leaving, now - overdueAt);
      drain.tick(now, {
        tell: (_, inS) => {
          overdueAt = now + inS * 1000 + MIN_HELD_LINK_MS;
        },
        restart: () => expect.unreachable("its link is held"),
        close: () => {
          closedAt = now;
        },
      });
    }
    return closedAt - overdueAt;
  };

  test("ends when it is overdue, and accepts calls until then", () => {
    const after = closedAfter((leaving, overdueMs) => {
      expect(leaving.isClosed).toBe(false);
      if (overdueMs % 1000 !== 0) return;
      leaving.forwarded(asked);
      leaving.answered(asked);
    });
    expect(after).toBe(0);
  });

  test("waits for each answer, accepts nothing more, and does not wait for ever", () => {
    const calls = [opening, asked, other];
    const after = closedAfter((leaving, overdueMs) => {
      if (overdueMs === -TICK_MS) for (const subject of calls) leaving.forwarded(subject);
      if (overdueMs > 0) expect(leaving.isClosed).toBe(true);
      // The opening and the call belong to one session.
      if (overdueMs === 500 || overdueMs === 700) leaving.answered(asked);
      if (overdueMs === 600) leaving.answered(other);
    });
    expect(after).toBe(700);
    const silent = closedAfter((leaving, overdueMs) => {
      if (overdueMs === -TICK_MS) leaving.forwarded(asked);
    });
    expect(silent).toBe(ANSWERS_MS);
  });
});
