/**
 * The common limit for what is queued for a user's connections, and that of a single one; see also
 * connection-life.test.ts.
 */
import { SLOW_CONSUMER_CLOSE_MS } from "@blindrelay/protocol";
import { expect, test } from "vitest";
import { Gauges } from "../gauges.ts";
import {
  DEFAULT_LIMITS,
  QUEUED_BYTES_PER_USER,
  RECOUNT_BYTES,
  SHORT_QUEUE_BYTES,
  TICK_MS,
} from "../limits/limits.ts";
import type { HubLink } from "../link.ts";
import { type AgentPeer, Connection, type LocalClient, User } from "./connection.ts";
import { Outbox } from "./outbox.ts";

const FRAME = new Uint8Array(60_000);
const SHORT = new Uint8Array(10_000);
const EACH = 17; // this many fit into one connection's queue

const world = () => {
  const outbox = new Outbox(DEFAULT_LIMITS.outboxBytes);
  const users = new Map<string, User>();
  /** A connection of the user; `stalled`: it never reads. */
  const connect = (userId: string, stalled: boolean, isKeyed = false) => {
    const user = users.get(userId) ?? new User(userId, new Gauges());
    users.set(userId, user);
    let queued = 0;
    const link = {
      queued: () => queued,
      send: (frame: { length: number }) => {
        if (!stalled) return;
        queued += frame.length;
        outbox.queues(connection);
      },
    };
    const connection = new Connection(
      link as Partial<HubLink> as HubLink,
      "192.0.2.1",
      DEFAULT_LIMITS,
      0,
    );
    connection.peer = isKeyed
      ? ({ role: "client", origin: null, key: { id: "ci" }, user } as LocalClient)
      : ({ user } as AgentPeer);
    const offer = (now = 0, frame = FRAME) => outbox.offer(connection, frame, now);
    const leave = () => outbox.drop(connection);
    return { link, offer, leave, connection };
  };
  /** Fills queues of the user until there is no more room. */
  const fill = (userId: string, isKeyed = false) => {
    const filled = [];
    for (;;) {
      const peer = connect(userId, true, isKeyed);
      filled.push(peer);
      for (let i = 0; i < EACH; i++) if (!peer.offer()) return filled;
    }
  };
  return { outbox, connect, fill };
};

test("of clients with access keys takes no room from the account's own connections", () => {
  const { connect, fill } = world();
  for (;;) {
    const filled = fill("many", true).at(-1);
    if (filled?.link.queued() === 0 && !filled.offer(0, SHORT)) break;
  }
  expect(connect("many", true, true).offer(0, SHORT)).toBe(false);
  expect(connect("many", true).offer()).toBe(true);
});

test("is bounded; a connection without a queue still gets messages, up to twice as much", () => {
  const { connect, fill } = world();
  const filled = fill("many");
  const queued = filled.reduce((sum, { link }) => sum + link.queued(), 0);
  expect(queued).toBeGreaterThan(QUEUED_BYTES_PER_USER);
  expect(queued).toBeLessThan(QUEUED_BYTES_PER_USER + 2 * FRAME.length);
  const reader = connect("many", false);
  for (let i = 0; i < 1000; i++) expect(reader.offer()).toBe(true);
  let more = 0;
  while (connect("many", true).offer()) more += FRAME.length;
  expect(queued + more).toBeGreaterThan(2 * QUEUED_BYTES_PER_USER - 2_000_000);
  expect(queued + more).toBeLessThan(2 * QUEUED_BYTES_PER_USER + 2 * FRAME.length);
});

test("does not stop a link that reads slowly, whatever the user's stuck links hold", () => {
  const { outbox, connect, fill } = world();
  fill("many");
  const slow = connect("many", false);
  let queued = 2 * SHORT.length; // it is never empty
  slow.link.queued = () => queued;
  outbox.queues(slow.connection);
  for (let second = 1; second < 60; second++) {
    expect(slow.offer(1000 * second, SHORT)).toBe(true);
  }
  queued = 2 * FRAME.length;
  expect(slow.offer(60_000, SHORT)).toBe(false);
});

test("is separate for each user", () => {
  const { connect, fill } = world();
  fill("many");
  const other = connect("other", true);
  for (let i = 0; i < EACH; i++) expect(other.offer()).toBe(true);
  expect(other.offer()).toBe(false);
});

test("is free again when connections have read or left", () => {
  const { connect, fill } = world();
  const filled = fill("many");
  const stuck = connect("many", true);
  stuck.offer();
  expect(stuck.offer(TICK_MS)).toBe(false);
  for (const { leave } of filled) leave();
  expect(stuck.offer(2 * TICK_MS)).toBe(true);
});

test("does not limit a user whose connections read, however much that is", () => {
  const { connect } = world();
  const reader = connect("many", false);
  const stuck = connect("many", true);
  stuck.offer();
  for (let i = 0; i < (3 * QUEUED_BYTES_PER_USER) / FRAME.length; i++) reader.offer();
  expect([reader.offer(), stuck.offer()]).toEqual([true, true]);
});

test("of one connection holds up to its bound, and is roomy up to half of it", () => {
  const { outbox, connect } = world();
  const { connection, offer } = connect("ann", true);
  const half = DEFAULT_LIMITS.outboxBytes / 2;
  expect([offer(0, new Uint8Array(half)), outbox.isRoomy(connection)]).toEqual([true, true]);
  expect([offer(0, new Uint8Array(1)), outbox.isRoomy(connection)]).toEqual([true, false]);
  expect([offer(0, new Uint8Array(half)), outbox.overCount]).toEqual([false, 1]);
  expect(offer(0, new Uint8Array(half - 1))).toBe(true);
});

test("that stays full ends its connection 30 s after the first message that did not fit", () => {
  const { outbox, connect } = world();
  const { connection, offer } = connect("ann", true);
  offer(0, new Uint8Array(DEFAULT_LIMITS.outboxBytes));
  for (const now of [1_000, 20_000]) expect(offer(now)).toBe(false);
  const ended: unknown[] = [];
  const tick = (now: number) => outbox.tick(now, (each) => ended.push(each));
  tick(1_000 + SLOW_CONSUMER_CLOSE_MS - 1);
  expect(ended).toEqual([]);
  tick(1_000 + SLOW_CONSUMER_CLOSE_MS);
  expect(ended).toEqual([connection]);
});

test("that is empty takes a message longer than a short queue, and a short one exactly that much", () => {
  const { connect, fill } = world();
  fill("many");
  expect(connect("many", false).offer(0, new Uint8Array(3 * SHORT_QUEUE_BYTES))).toBe(true);
  const { offer } = connect("many", true);
  expect(offer(0, SHORT)).toBe(true);
  expect(offer(0, new Uint8Array(SHORT_QUEUE_BYTES - SHORT.length + 1))).toBe(false);
  expect(offer(0, new Uint8Array(SHORT_QUEUE_BYTES - SHORT.length))).toBe(true);
});

test("of others, and of connections that have not authenticated, does not count as a user's", () => {
  const { outbox, connect, fill } = world();
  fill("many");
  const [stranger, slow] = [connect("none", true), connect("other", false)];
  stranger.offer();
  stranger.connection.peer = null;
  slow.link.queued = () => 2 * FRAME.length;
  outbox.queues(slow.connection);
  for (let i = 0; i < (2 * QUEUED_BYTES_PER_USER) / FRAME.length; i++) {
    expect(slow.offer()).toBe(true);
  }
});

test("of a user over the limit is counted again each tick, or when 1 MiB more was sent", () => {
  const { outbox, connect, fill } = world();
  fill("many", true);
  const slow = connect("many", false, true);
  let counts = 0;
  slow.link.queued = () => {
    counts += 1;
    return 2 * FRAME.length;
  };
  outbox.queues(slow.connection);
  /** How often the user's queues are counted when a long message is refused. */
  const counted = (now: number) => {
    counts = -1; // once to see whether the message fits
    expect(slow.offer(now)).toBe(false);
    return counts;
  };
  expect([counted(TICK_MS), counted(2 * TICK_MS - 1), counted(2 * TICK_MS)]).toEqual([1, 0, 1]);
  const { offer } = connect("many", false, true);
  offer(2 * TICK_MS, new Uint8Array(RECOUNT_BYTES - 1));
  expect(counted(2 * TICK_MS)).toBe(0);
  offer(2 * TICK_MS, new Uint8Array(1));
  expect(counted(2 * TICK_MS)).toBe(1);
});

test("is reported as the sum of all connections that have not left, the emptied asked once", () => {
  const { outbox, connect } = world();
  const [a, b] = [connect("ann", true), connect("bob", true)];
  for (const { offer } of [a, b]) offer();
  expect([outbox.queuedBytes(), outbox.queuedBytes()]).toEqual([120_000, 120_000]);
  let asked = 0;
  a.link.queued = () => {
    asked += 1;
    return 0;
  };
  expect([outbox.queuedBytes(), outbox.queuedBytes(), asked]).toEqual([60_000, 60_000, 1]);
  b.leave();
  expect(outbox.queuedBytes()).toBe(0);
});
