/** Sessions of packet versions "3" and "4", where they differ for a client from "1" and "2". */
import fc from "fast-check";
import { expect, it } from "vitest";
import { DOUBT_MS } from "./core/defaults.ts";
import { type Ending, SECRET, World } from "./testing/world.ts";

const HOUR_MS = 3_600_000;

it("finds out within 5 s that an agent has restarted unseen, and opens again", async () => {
  const world = new World();
  const agent = world.agent("pump-7", SECRET, "3");
  const client = await world.connected();
  const pump = client.agent("pump-7", SECRET, { version: "3" });
  const first = world.follow(pump.call("echo", [1]));
  await world.run(1_000);
  expect(first.result).toEqual([1]);
  agent.restart();
  const lost = world.follow(pump.call("echo", [2]));
  const repeated = world.follow(pump.call("echo", [3], { idempotent: true }));
  await world.run(DOUBT_MS + 2_000);
  // Its packet was dropped, but the client cannot know that.
  expect(lost.error?.code).toBe("OUTCOME_UNKNOWN");
  expect(repeated.result).toEqual([3]);
  expect(agent.executed).toEqual(["echo:[1]", "echo:[3]"]);
  client.close();
});

it("asks in doubt without disturbing a session that the agent still has", async () => {
  const world = new World();
  const agent = world.agent("pump-7", SECRET, "3");
  agent.handlers.set("slow", ({ answer }) => world.clock.set(25_000, () => answer("done")));
  const client = await world.connected();
  const pump = client.agent("pump-7", SECRET, { version: "3" });
  const slow = world.follow(pump.call("slow"));
  await world.run(28_000);
  expect(slow.result).toBe("done");
  expect(agent.executed).toEqual(["slow:undefined"]);
  client.close();
});

it("renews after an hour", async () => {
  const world = new World();
  const agent = world.agent("pump-7", SECRET, "3");
  const client = await world.connected();
  const pump = client.agent("pump-7", SECRET, { version: "3" });
  pump.on("event", () => undefined);
  await world.run(HOUR_MS - 60_000);
  const before = agent.sessions.held();
  await world.run(120_000);
  const call = world.follow(pump.call("echo", []));
  await world.run(1_000);
  expect(call.result).toEqual([]);
  expect(agent.sessions.held()).not.toEqual(before);
  client.close();
});

it("says once that an agent is not proven, and goes on trying", async () => {
  const world = new World();
  world.agent("pump-7", SECRET, "3");
  const client = await world.connected();
  const deviceKey = Buffer.alloc(32, 9).toString("base64url");
  const pump = client.agent("pump-7", SECRET, { version: "3", deviceKey });
  const heard: string[] = [];
  pump.on("event", () => undefined);
  pump.on("interrupted", (reason) => heard.push(reason));
  await world.run(120_000);
  expect(heard).toEqual([expect.stringContaining("was not proven")]);
  const call = world.follow(pump.call("echo", []));
  await world.run(1_000);
  expect(call.error?.code).toBe("UNPROVEN");
  client.close();
});

it("makes each call end once and by its deadline, whenever the agent restarts unseen", async () => {
  const at = fc.nat(40_000);
  const history = fc.record({
    seed: fc.integer({ min: 1 }),
    restarts: fc.array(at, { maxLength: 4 }),
    calls: fc.array(fc.record({ at, idempotent: fc.boolean() }), { minLength: 1, maxLength: 10 }),
  });
  let repeated = 0;
  await fc.assert(
    fc.asyncProperty(history, async ({ seed, restarts, calls }) => {
      const world = new World(seed);
      const agent = world.agent("pump-7", SECRET, "3");
      const client = await world.connected();
      const pump = client.agent("pump-7", SECRET, { version: "3" });
      for (const ms of restarts) world.clock.set(ms, () => agent.restart());
      const endings: { readonly n: number; readonly ending: Ending; readonly safe: boolean }[] = [];
      calls.forEach(({ at: ms, idempotent }, n) => {
        world.clock.set(ms, () => {
          const call = pump.call("echo", [n], { idempotent, timeoutMs: 15_000 });
          endings.push({ n, ending: world.follow(call), safe: idempotent });
        });
      });
      await world.run(60_000);
      expect(endings).toHaveLength(calls.length);
      for (const { n, ending, safe } of endings) {
        expect(ending.times).toBe(1);
        // A restart costs at most the doubt and one opening, so the deadline leaves room.
        if (safe && restarts.length <= 1) expect(ending.result).toEqual([n]);
        const runs = agent.executed.filter((line) => line === `echo:[${n}]`).length;
        if (!safe) expect(runs).toBeLessThanOrEqual(1);
        if (ending.error?.code === "OUTCOME_UNKNOWN") repeated++;
      }
      client.close();
      await world.run(200_000);
      expect(world.clock.pending).toBe(0);
    }),
    { numRuns: 100 },
  );
  // The histories must be hard enough to matter.
  expect(repeated).toBeGreaterThan(5);
});
