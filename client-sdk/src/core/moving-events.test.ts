/** A listener moves from one session to the next: no event is lost unsaid. */
import { growth, LINEAR } from "@blindrelay/protocol/testing/growth";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { settle } from "../testing/streams.ts";
import { SECRET, World } from "../testing/world.ts";
import { MovingEvents } from "./moving-events.ts";

const RENEW_MS = 60_000;

/** A listener whose session is about to be renewed; `before` is the sid of the old one. */
const listening = async (seed = 1) => {
  const world = new World(seed);
  const agent = world.agent();
  const client = await world.connected();
  const pump = client.agent("pump-7", SECRET, { renewAfterMs: RENEW_MS });
  const heard: unknown[] = [];
  const told: unknown[] = [];
  pump.on("event", (_name, data) => heard.push(data));
  pump.on("gap", (count, of) => told.push([count, of]));
  pump.on("interrupted", () => told.push("interrupted"));
  pump.on("reopened", () => told.push("reopened"));
  expect(await settle(world, pump.call("echo", ["hello"]), 200)).toEqual(["hello"]);
  const before = agent.sessions.held()[0] as string;
  await world.run(RENEW_MS);
  const renew = () => world.follow(pump.call("echo", ["again"]));
  return { world, agent, pump, heard, told, before, renew };
};

describe("an event of the session before", () => {
  it("that comes after the first answer of the new one, and only there, is missing", async () => {
    const { world, agent, heard, told, before, renew } = await listening();
    const slow = (text: string) => text.includes(before);
    world.relay.toClient = (_, text) => (slow(text) ? 300 : 5);
    agent.emit("level", 1);
    renew();
    await world.run(2_000);
    expect(agent.sessions.held()).toHaveLength(1);
    agent.emit("level", 2);
    await world.run(100);
    expect([heard, told]).toEqual([[2], [[1, "events"]]]);
  });

  it("that the new one brought too is heard once, and nothing is said", async () => {
    const { world, agent, heard, told, before, renew } = await listening();
    world.relay.toClient = (_, text) => (text.includes(before) ? 300 : 5);
    renew();
    for (let i = 0; i < 5 && agent.sessions.held().length < 2; i++) await world.run(10);
    expect(agent.sessions.held()).toHaveLength(2);
    for (const level of [1, 1, 2]) agent.emit("level", level);
    await world.run(2_000);
    expect(agent.sessions.held()).toHaveLength(1);
    expect([heard, told]).toEqual([[1, 1, 2], []]);
  });

  it("that the new one brings later is heard once, and nothing is said", async () => {
    const { world, agent, heard, told, before, renew } = await listening();
    world.relay.toClient = (_, text) => {
      const isFirst = text.includes('"seq":0') || text.includes('"seq":1,');
      return text.includes(before) || isFirst ? 5 : 300;
    };
    renew();
    for (let level = 0; level < 60; level++) {
      agent.emit("level", level);
      await world.run(1);
    }
    await world.run(2_000);
    expect([heard, told]).toEqual([Array.from({ length: 60 }, (_, level) => level), []]);
  });

  it("is missing too if the answer to an earlier ping comes before it", async () => {
    const { world, agent, heard, told, before, renew } = await listening();
    world.relay.toClient = (_, text) => (text.includes(before) ? 300 : 5);
    agent.goOnline(); // shown to the client, which pings
    await world.run(20);
    agent.emit("level", 1);
    renew();
    await world.run(2_000);
    expect([heard, told]).toEqual([[], [[1, "events"]]]);
  });

  it("that never comes is a gap", async () => {
    const { world, agent, heard, told, before, renew } = await listening();
    world.relay.toClient = (_, text) => (text.includes(before) ? null : 5);
    agent.emit("level", 1);
    world.relay.toClient = () => 5;
    renew();
    await world.run(2_000);
    expect([heard, told]).toEqual([[], [[1, "packets"]]]);
  });

  it("cannot be missing if the agent itself closed that session, and nothing is said", async () => {
    const { world, agent, heard, told, renew } = await listening();
    renew();
    for (let i = 0; i < 50 && agent.sessions.held().length < 2; i++) await world.run(1);
    agent.emit("level", 1);
    agent.dropSession();
    await world.run(100);
    agent.emit("level", 2);
    await world.run(2_000);
    expect([heard, told]).toEqual([[1, 2], []]);
  });

  it("that may have come, had the session not ended, is said", async () => {
    const { world, agent, told, before, renew } = await listening();
    world.relay.toClient = (_, text) => (text.includes(before) ? null : 5);
    agent.emit("level", 1);
    renew();
    await world.run(300_000);
    expect(told).toContain("reopened");
  });
});

it("loses no event unsaid, however late the packets of each session come", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1 }),
      fc.array(fc.nat(400), { minLength: 1, maxLength: 12 }),
      fc.array(fc.nat(60), { minLength: 1, maxLength: 30 }),
      async (seed, delays, pauses) => {
        const { world, agent, heard, told, renew } = await listening(seed);
        const { clock, relay } = world;
        // In order within a session.
        const last = new Map<string, number>();
        let n = 0;
        relay.toClient = (_, text) => {
          const sid = (/[^"]{22}\.[^"]{22}/.exec(text) ?? [""])[0];
          const delay = delays[n++ % delays.length] as number;
          const at = Math.max(clock.now() + delay, last.get(sid) ?? 0);
          last.set(sid, at);
          return at - clock.now();
        };
        renew();
        for (const [level, pause] of pauses.entries()) {
          await world.run(pause);
          agent.emit("level", level);
        }
        await world.run(5_000);
        const missing = told.flatMap((one) => (Array.isArray(one) ? [one[0] as number] : []));
        const said = missing.reduce((sum, count) => sum + count, 0);
        expect(new Set(heard).size + said).toBeGreaterThanOrEqual(pauses.length);
        if (said === 0) expect(told).toEqual([]);
      },
    ),
    { numRuns: 60 },
  );
});

it("says how many are missing once there are too many to compare", async () => {
  const { world, agent, told, before, renew } = await listening();
  world.relay.toClient = (_, text) => (text.includes(before) ? 300 : 5);
  const data = "x".repeat(40_000);
  for (let n = 0; n < 30; n++) agent.emit("big", data);
  renew();
  await world.run(2_000);
  expect(told).toEqual([[27, "events"]]);
});

it("compares a bounded number of events", () => {
  const moving = new MovingEvents("before", "after");
  const data = "x".repeat(40_000);
  const added = Array.from({ length: 30 }, () => moving.add("before", "big", data));
  expect(added.slice(0, 26)).not.toContain(false);
  expect(added.slice(27)).not.toContain(true);
  expect(moving.add("another", "big", data)).toBe(true);
});

it("compares the events of an agent that sends very many in linear time", () => {
  const grown = growth(200, (n) => () => {
    const moving = new MovingEvents("before", "after");
    for (let at = 0; at < n; at++) moving.add("before", "e", [at]);
    for (let at = 0; at < n; at++) moving.add("after", "e", [-1 - at]);
    expect(moving.missing).toBe(n);
  });
  expect(grown).toBeLessThan(LINEAR);
});
