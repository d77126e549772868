/** Turns between users: a heavy sender waits, in order, and loses nothing. */
import { PING_INTERVAL_MS } from "@blindrelay/protocol";
import { describe, expect, it, vi } from "vitest";
import {
  ALONE_AFTER_TURNS,
  ALONE_TURN_COST,
  BYTES_PER_COST,
  LOOK_UP_COST,
  TURN_COST,
  UNAUTHENTICATED_TURN_COST,
} from "../limits/limits.ts";
import { authOf, envelope, type VirtualPeer, World } from "../testing/test-hub.ts";

/** A world in which the test triggers each turn. */
const world = () => {
  const w = new World({ rateBurst: 100_000, maxRequests: 100_000 });
  w.user("greedy", "sink");
  w.user("ann", "lamp");
  const peers = {
    sink: w.agent("sink"),
    lamp: w.agent("lamp"),
    greedy: w.client("greedy"),
    second: w.client("greedy"),
    ann: w.client("ann"),
  };
  w.advance(10); // the cost of the logins is forgotten with the next turn
  const turns: (() => void)[] = [];
  w.turn = (happen) => turns.push(happen);
  const turn = (): void => {
    for (const happen of turns.splice(0)) happen();
    w.settle();
  };
  return { w, turns, turn, ...peers };
};

const say = (peer: VirtualPeer, count: number, agentId = "sink", payload = "x", from = 0): void => {
  for (let i = from; i < from + count; i++) {
    peer.say(envelope(payload, { agent_id: agentId, request_id: `${i}` }));
  }
};

const ids = (peer: VirtualPeer): number[] => peer.take().map((each) => Number(each.request_id));
const upTo = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, i) => from + i);

describe("a user who sends much", () => {
  it("is served one turn at a time, in order, while another proceeds", () => {
    const { turn, turns, greedy, sink, ann, lamp } = world();
    say(greedy, 1000);
    const first = ids(sink);
    expect(first.length).toBeLessThanOrEqual(TURN_COST);
    expect(greedy.paused).toBe(true);
    say(ann, 1, "lamp");
    expect(ids(lamp)).toEqual([0]);
    const order = [...first];
    while (turns.length > 0) {
      turn();
      const some = ids(sink);
      expect(some.length).toBeLessThanOrEqual(TURN_COST);
      order.push(...some);
    }
    expect(order).toEqual(upTo(0, 1000));
    expect(greedy.paused).toBe(false);
    expect(greedy.take()).toEqual([]);
  });

  it("has one turn for all of its connections, which take turns within it", () => {
    const { turn, turns, greedy, second, sink } = world();
    say(greedy, 200);
    say(second, 200, "sink", "x", 1000);
    const order = ids(sink);
    const untilBoth: number[] = [];
    while (turns.length > 0) {
      turn();
      const some = ids(sink);
      expect(some.length).toBeLessThanOrEqual(TURN_COST);
      order.push(...some);
      if (!order.some((id) => id >= 1000)) untilBoth.push(some.length);
    }
    expect(order.toSorted((a, b) => a - b)).toEqual([...upTo(0, 200), ...upTo(1000, 1200)]);
    expect(untilBoth.length).toBeLessThanOrEqual(1);
    expect([greedy.paused, second.paused]).toEqual([false, false]);
  });

  it("is paused only when much is waiting, because stopping and starting a socket is costly", () => {
    const { turn, turns, greedy, sink } = world();
    say(greedy, 2 * TURN_COST);
    expect(sink.take().length).toBeLessThan(2 * TURN_COST);
    expect(greedy.paused).toBe(false);
    say(greedy, 1, "sink", "x".repeat(63_000));
    expect(greedy.paused).toBe(true);
    while (turns.length > 0) turn();
    expect(greedy.paused).toBe(false);
  });

  it("never waits while it sends less than half a share in each turn", () => {
    const { turn, greedy, sink } = world();
    for (let i = 0; i < 20; i++) {
      say(greedy, TURN_COST / 2 - 4, "sink", "x", i * TURN_COST);
      expect(sink.take()).toHaveLength(TURN_COST / 2 - 4);
      turn();
    }
  });

  it("is not charged for answers to the relay's pings", () => {
    const [idle, fresh] = [world(), world()];
    idle.w.advance(3 * PING_INTERVAL_MS);
    for (const { greedy } of [idle, fresh]) say(greedy, 2 * TURN_COST);
    expect(ids(idle.sink)).toEqual(ids(fresh.sink));
  });

  it("is charged for bytes and look-ups", () => {
    const { turn, turns, greedy, sink, w } = world();
    say(greedy, 200); // now every turn begins with a full share
    while (turns.length > 0) turn();
    sink.take();
    const large = "x".repeat(16 * 1024);
    say(greedy, 15, "sink", large);
    sink.take();
    turn();
    expect(ids(sink).length).toBeLessThanOrEqual(TURN_COST / 16 + 1);
    while (turns.length > 0) turn();
    w.slowStore = true;
    say(greedy, 100, "nobody");
    let lookUps = 0;
    for (; w.lookUps.length > 0; lookUps++) w.answer();
    w.slowStore = false;
    expect(lookUps).toBeLessThanOrEqual(TURN_COST / LOOK_UP_COST + 1);
    while (turns.length > 0) turn();
    expect(greedy.codes()).toHaveLength(100);
  });

  it("is served to the end after disconnecting, and the next one starts afresh", () => {
    const { turn, greedy, sink, w } = world();
    say(greedy, 500);
    greedy.hangUp();
    expect(ids(sink)).toEqual(upTo(0, 500));
    turn();
    expect(w.dropped()).toEqual({});
  });

  it("is gone after disconnecting even if a bug ends its last messages", () => {
    const { greedy, sink, w } = world();
    const before = w.hub.stats().connections;
    say(greedy, 500);
    vi.spyOn(sink, "send").mockImplementation(() => {
      throw new Error("a bug");
    });
    expect(() => greedy.hangUp()).toThrow("a bug");
    expect(w.hub.stats().connections).toEqual({ ...before, client: before.client - 1 });
  });

  it("gets larger but bounded turns after being alone for a while", () => {
    const { greedy, sink } = alone();
    say(greedy, 1000);
    const { length } = sink.take();
    expect(length).toBeGreaterThan(2 * TURN_COST);
    expect(length).toBeLessThanOrEqual(ALONE_TURN_COST);
  });

  it("gets normal turns again as soon as somebody else sends", () => {
    const { turn, turns, greedy, sink, ann, lamp } = alone();
    say(greedy, 50); // most of a large turn is left
    say(ann, 1, "lamp");
    expect(ids(lamp)).toEqual([0]);
    sink.take();
    say(greedy, 2000);
    for (; turns.length > 0; turn()) expect(sink.take().length).toBeLessThanOrEqual(TURN_COST);
    expect(sink.take().length).toBeLessThanOrEqual(TURN_COST);
  });
});

/** The world after a while in which only the greedy user was active. */
const alone = () => {
  const made = world();
  for (let i = 0; i <= ALONE_AFTER_TURNS; i++) {
    say(made.greedy, 4, "sink", "x".repeat((TURN_COST / 8) * BYTES_PER_COST));
    while (made.turns.length > 0) made.turn();
  }
  made.sink.take();
  return made;
};

it("unauthenticated connections share a turn, and do not delay others", () => {
  const { w, turns, turn, ann, lamp } = world();
  const strangers = Array.from({ length: 4 }, () => w.connect());
  for (const stranger of strangers) for (let i = 0; i < 100; i++) stranger.say({ type: "ping" });
  expect(strangers.at(-1)?.paused).toBe(true); // however little they hold
  const answers = (): number => strangers.reduce((sum, each) => sum + each.codes().length, 0);
  let sum = answers();
  expect(sum).toBeLessThanOrEqual(UNAUTHENTICATED_TURN_COST);
  say(ann, 1, "lamp");
  expect(ids(lamp)).toEqual([0]);
  while (turns.length > 0) {
    turn();
    sum += answers();
  }
  expect(sum).toBe(400);
});

it("an auth that waited while its peer hung up takes nobody's place", () => {
  const { w, lamp } = world();
  w.storeAtHand = true;
  const [stranger, gone] = [w.connect(), w.connect()];
  for (let i = 0; i < UNAUTHENTICATED_TURN_COST; i++) stranger.say({ type: "ping" });
  gone.say(authOf("lamp"));
  expect(gone.take()).toEqual([]);
  gone.hangUp();
  expect(lamp.closed).toBeNull();
  expect(w.hub.stats()).toMatchObject({ agentsOnline: 2, counters: { takeovers: 0 } });
});
