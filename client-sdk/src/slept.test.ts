/** A machine that sleeps, or whose clock is set, while a session is open. */
import { expect, it } from "vitest";
import { Client } from "./client.ts";
import { settle } from "./testing/streams.ts";
import { ACCOUNT_TOKEN, SECRET, World } from "./testing/world.ts";

const HOUR_MS = 3_600_000;

/** `leap`: the client's clock only, as an ElapsedClock sees a sleep or a clock that is set. */
const listening = async () => {
  const world = new World();
  const { clock } = world;
  let leapt = 0;
  const timer = {
    now: () => clock.now() + leapt,
    leapt: () => leapt,
    set: (ms: number, fn: () => void) => clock.set(ms, fn),
    clear: (handle: unknown) => clock.clear(handle),
  };
  const agent = world.agent();
  const options = { url: "https://relay.test", accountToken: ACCOUNT_TOKEN };
  const started = new Client(options, { ...world.ports, timer }).start();
  await world.run(100);
  const pump = (await started).agent("pump-7", SECRET);
  const told: unknown[] = [];
  pump.on("event", (name, data) => told.push([name, data]));
  pump.on("interrupted", () => told.push("interrupted"));
  pump.on("reopened", () => told.push("reopened"));
  expect(await settle(world, pump.call("echo", ["hello"]), 200)).toEqual(["hello"]);
  const leap = (ms: number) => {
    leapt += ms;
  };
  return { world, agent, pump, told, leap };
};

it("a client that slept does not take what was sealed before it for news", async () => {
  const { world, agent, told, leap } = await listening();
  agent.emit("level", "before the night");
  leap(8 * HOUR_MS);
  await world.run(2_000);
  expect(told).toEqual(["interrupted", "reopened"]);
  agent.emit("level", "in the morning");
  await world.run(100);
  expect(told.slice(2)).toEqual([["level", "in the morning"]]);
});

it.each([1_000, 60_000])(
  "a call that was in flight when the client fell asleep ends: an answer %i ms later does not count",
  async (handlerMs) => {
    const { world, agent, pump, leap } = await listening();
    agent.handlers.set("slow", ({ answer }) => world.clock.set(handlerMs, () => answer("done")));
    const call = world.follow(pump.call("slow", [], { timeoutMs: 120_000 }));
    await world.run(500);
    leap(8 * HOUR_MS);
    await world.run(handlerMs);
    expect(call.error?.code).toBe("OUTCOME_UNKNOWN");
  },
);

it("a clock that was set forward does not let a call run later", async () => {
  const { world, agent, pump, leap } = await listening();
  const left: number[] = [];
  agent.handlers.set("read", ({ expires, ageMs, answer }) => {
    left.push((expires as number) - ageMs);
    answer(true);
  });
  for (const set of [0, 60_000, HOUR_MS]) {
    leap(set);
    expect(await settle(world, pump.call("read", [], { timeoutMs: 5_000 }), 2_000)).toBe(true);
  }
  for (const ms of left) expect(ms).toBeLessThanOrEqual(5_000);
  expect(Math.min(...left)).toBeGreaterThan(4_900);
});
