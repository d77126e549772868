/**
 * The common limit for what is queued for a user's connections; for a single one, see
 * connection-life.test.ts.
 */
import { expect, test } from "vitest";
import { Gauges } from "../gauges.ts";
import { DEFAULT_LIMITS, QUEUED_BYTES_PER_USER, TICK_MS } from "../limits/limits.ts";
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
