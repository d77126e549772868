/** Turns between users: a heavy sender waits, in order, and loses nothing. */
import { PING_INTERVAL_MS } from "@blindrelay/protocol";
import { describe, expect, it, vi } from "vitest";
import {
  ALONE_AFTER_TURNS,
  ALONE_TURN_COST,
  LOOK_UP_COST,
  TURN_COST,
  UNAUTHENTICATED_TURN_COST,
} from "../limits/limits.ts";
import { authOf, envelope, type VirtualPeer, World } from "../testing/test-hub.ts";
import type { Connection } from "./connection.ts";
import { FairScheduler } from "./fair-scheduler.ts";

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

  it("with an access key delays the account's own clients and its agents as little as strangers", () => {
    const { w, greedy, sink } = world();
    w.store.keys.set("ci", { userId: "greedy", site: null, expiresAtMs: null });
    const [ci, another] = [w.clientWithKey("ci"), w.clientWithKey("ci")];
    say(ci, 500);
    say(another, 1, "sink", "x", 800);
    sink.take();
    say(greedy, 1, "sink", "x", 900);
    sink.say(envelope("there", { request_id: "900" }));
    expect([sink.take().length, greedy.take().length]).toEqual([1, 1]);
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
    const before = ids(sink);
    greedy.hangUp();
    expect(ids(sink)).toEqual([]);
    const served: number[] = [];
    for (let most = 0; served.length < 500 - before.length; most += TURN_COST) {
      expect(served.length).toBeLessThanOrEqual(most);
      turn();
      served.push(...ids(sink));
    }
    expect([...before, ...served]).toEqual(upTo(0, 500));
    turn();
    expect(w.dropped()).toEqual({});
    expect(w.hub.stats().connections).toMatchObject({ client: 2, closing: 0 });
  });

  it("is gone after disconnecting even if a bug ends its last messages", () => {
    const { turn, greedy, sink, w } = world();
    const before = w.hub.stats().connections;
    say(greedy, 500);
    vi.spyOn(sink, "send").mockImplementation(() => {
      throw new Error("a bug");
    });
    greedy.hangUp();
    expect(turn).toThrow("a bug");
    expect(w.hub.stats().connections).toEqual({ ...before, client: before.client - 1 });
  });

  it("is heard to the end before what it says on its next link", () => {
    const { greedy, sink, turns, turn, w } = world();
    const { session } = greedy as unknown as { session: string };
    say(greedy, 200);
    greedy.hangUp();
    const next = w.clientAgain(session);
    say(next, 1, "sink", "x", 200);
    while (turns.length > 0) turn();
    expect(ids(sink)).toEqual(upTo(0, 201));
  });

  it("is heard to the end if it is an agent that has a new link meanwhile", () => {
    const { greedy, sink, turns, turn, w } = world();
    say(greedy, 200);
    while (turns.length > 0) turn();
    for (const id of ids(sink)) sink.say(envelope("x", { request_id: `${id}` }));
    expect(w.hub.hasHeld("sink")).toBe(true);
    sink.hangUp();
    const again = w.agent("sink");
    again.say(envelope("x", { request_id: "199" }));
    while (turns.length > 0) turn();
    expect(ids(greedy)).toEqual([...upTo(0, 200), 199]);
    expect(w.hub.stats()).toMatchObject({ agentsOnline: 2, connections: { agent: 2, closing: 0 } });
    expect(w.hub.counters.takeovers).toBe(0);
    say(greedy, 1);
    expect([ids(again), greedy.take(), w.hub.hasHeld("sink")]).toEqual([[0], [], false]);
  });

  it("and whose end fails by a bug takes no turn from others", () => {
    const { greedy, sink, ann, lamp, turns, turn, w } = world();
    const faults: unknown[] = [];
    w.turn = () => turns.push(() => w.hub.turn(w.now, (_, error) => faults.push(error)));
    for (let i = 0; i < TURN_COST + 1; i++) sink.say(envelope("to nobody"));
    say(ann, 2 * TURN_COST, "lamp");
    sink.hangUp();
    greedy.send = () => {
      throw new Error("a bug");
    };
    while (turns.length > 0) turn();
    expect([faults.length, ids(lamp)]).toEqual([1, upTo(0, 2 * TURN_COST)]);
  });
});

describe("a share", () => {
  /** A scheduler whose turns the test counts and makes, and two users' connections. */
  const shares = () => {
    const w = new World();
    w.user("ann");
    w.user("bob");
    const [ann, bob] = [w.client("ann").connection, w.client("bob").connection];
    w.advance(10);
    let asked = 0;
    const scheduler = new FairScheduler({
      nextTurn: () => {
        asked += 1;
      },
    });
    const next = (): Connection[] => {
      const resumed: Connection[] = [];
      scheduler.next((connection) => resumed.push(connection));
      return resumed;
    };
    /** Messages without bytes until the share is used up. */
    const useUp = (connection = ann): number => {
      let taken = 0;
      while (scheduler.take(connection, 0)) taken += 1;
      return taken;
    };
    return { scheduler, ann, bob, next, useUp, asked: () => asked };
  };

  it("asks for a turn once half of it is used, and not twice for the same turn", () => {
    const { scheduler, ann, bob, next, useUp, asked } = shares();
    for (let i = 0; i < TURN_COST / 2; i++) scheduler.take(ann, 0);
    expect(asked()).toBe(0);
    scheduler.take(ann, 0);
    expect(asked()).toBe(1);
    expect([useUp(), useUp(bob), asked()]).toEqual([TURN_COST / 2 - 1, TURN_COST, 1]);
    expect(next()).toEqual([]);
    expect([useUp(), useUp(bob), asked()]).toEqual([TURN_COST, TURN_COST, 2]);
  });

  it.each([
    [0, 0],
    [TURN_COST / 2, 0],
    [TURN_COST / 2 + 1, 1],
  ])("that owes %i asks for %i more turns", (cost, more) => {
    const { scheduler, ann, next, useUp, asked } = shares();
    useUp();
    scheduler.charge(ann, cost);
    next();
    expect(asked()).toBe(1 + more);
  });

  it("that owes whole turns lets its connections wait for them, in order", () => {
    const { scheduler, ann, next, asked } = shares();
    scheduler.charge(ann, 2 * TURN_COST);
    expect([scheduler.take(ann, 0), asked()]).toEqual([false, 0]);
    scheduler.wait(ann);
    expect([scheduler.awaits(ann), next(), scheduler.awaits(ann)]).toEqual([true, [], true]);
    expect(asked()).toBe(2);
    expect(next()).toEqual([ann]);
    expect([scheduler.awaits(ann), asked()]).toEqual([false, 2]);
  });

  it("is larger from a certain turn without other senders, and only for who sent last", () => {
    const { scheduler, bob, next, useUp } = shares();
    useUp(bob);
    scheduler.charge(bob, (ALONE_AFTER_TURNS + 9) * TURN_COST);
    scheduler.wait(bob);
    const takes: number[] = [];
    let resumedAt = 0;
    for (let turn = 1; turn <= ALONE_AFTER_TURNS + 20; turn++) {
      takes.push(useUp());
      if (next().includes(bob)) resumedAt = turn;
    }
    expect([...new Set(takes)]).toEqual([TURN_COST, ALONE_TURN_COST]);
    expect(takes.indexOf(ALONE_TURN_COST)).toBe(ALONE_AFTER_TURNS);
    expect(resumedAt).toBe(ALONE_AFTER_TURNS + 10);
    scheduler.take(bob, 0);
    expect(useUp()).toBe(TURN_COST);
    next();
    expect(useUp()).toBe(TURN_COST);
  });
});

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
  const { w, lamp, turns, turn } = world();
  w.storeAtHand = true;
  const [stranger, gone] = [w.connect(), w.connect()];
  for (let i = 0; i < UNAUTHENTICATED_TURN_COST; i++) stranger.say({ type: "ping" });
  gone.say(authOf("lamp"));
  expect(gone.take()).toEqual([]);
  gone.hangUp();
  while (turns.length > 0) turn();
  expect(lamp.closed).toBeNull();
  expect(w.hub.stats()).toMatchObject({ agentsOnline: 2, counters: { takeovers: 0 } });
});
