/**
 * At the relay's own limits: 10,000 requests of a session token, 1,000 messages a second, 1,024
 * bindings.
 */
import { describe, expect, it } from "vitest";
import { house, settle } from "./testing/streams.ts";
import { SECRET, World } from "./testing/world.ts";
import type { WriteStream } from "./write-stream.ts";

const authsOf = (world: World) =>
  world.relay.received.map((text) => JSON.parse(text)).filter(({ type }) => type === "auth");

describe("credentials", () => {
  it("survive 10,000 requests without losing a call", async () => {
    const world = new World();
    const agent = world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    let ended = 0;
    let right = 0;
    const caller = async () => {
      for (let n = 0; n < 420; n++) {
        const [same] = await pump.call<[number]>("echo", [n]);
        if (same === n) right++;
        ended++;
      }
    };
    const callers = Array.from({ length: 25 }, () => caller());
    await world.run(30_000);
    await Promise.all(callers);
    expect([ended, right]).toEqual([10_500, 10_500]);
    expect(agent.executed).toHaveLength(10_500);
    expect(authsOf(world).map((auth) => Object.keys(auth)[1])).toEqual(["api_token", "api_token"]);
  });
});

describe("writers", () => {
  /** Each of 20 writes a byte at this interval. */
  const dribble = async (rounds: number, everyMs: number) => {
    const { world, pump, kept, relay } = await house();
    const open = Array.from({ length: 20 }, () => pump.writeStream("log.write"));
    const writers = (await settle(world, Promise.all(open), 1_000)) as WriteStream[];
    relay.received.length = 0;
    for (let round = 0; round < rounds; round++) {
      world.clock.set(round * everyMs, () => {
        for (const writer of writers) void writer.write(new Uint8Array(1));
      });
    }
    return { world, relay, kept, writers };
  };

  it("stay within the relay's rate, however small their pieces are", async () => {
    const { world, relay, kept } = await dribble(300, 3);
    await world.run(1_000);
    expect(relay.received.length).toBeGreaterThan(2_000);
    expect(relay.received.length).toBeLessThan(3_500);
    await world.run(20_000);
    expect(kept).toHaveLength(6_000);
  });

  it("continue at full speed when the session token's requests are used up", async () => {
    const { world, kept, writers } = await dribble(600, 20);
    await world.run(12_000);
    await settle(world, Promise.all(writers.map((writer) => writer.end())));
    expect(kept).toHaveLength(12_000);
    expect(authsOf(world)).toHaveLength(1);
  });
});

describe("many agents", () => {
  it("share one link, each call to its own agent, under one limit of the relay", async () => {
    const world = new World();
    const ids = Array.from({ length: 1_200 }, (_, n) => `agent-${n}`);
    const agents = ids.map((id) => {
      const agent = world.agent(id);
      agent.handlers.set("who", ({ answer }) => answer(id));
      return agent;
    });
    let second = 0;
    let inSecond = 0;
    let most = 0;
    world.relay.toAgent = () => {
      const now = Math.floor(world.clock.now() / 1000);
      inSecond = now === second ? inSecond + 1 : 1;
      second = now;
      most = Math.max(most, inSecond);
      return 5;
    };
    const client = await world.connected();
    const round = async () => {
      const calls = ids.map((id) => world.follow(client.agent(id, SECRET).call("who")));
      await world.run(6_000);
      expect(calls.map(({ result }) => result)).toEqual(ids);
    };
    await round();
    await round();
    expect(agents.every(({ executed }) => executed.length === 2)).toBe(true);
    expect(most).toBeLessThan(2_500);
  });
});

describe("agents that do not answer", () => {
  it("are awaited no longer than until they do: then only the pace counts", async () => {
    const world = new World();
    // Every answer is there before the pace allows one more call.
    world.relay.latencyMs = 0;
    world.relay.toAgent = () => 0;
    const client = await world.connected();
    const pumps = Array.from({ length: 10 }, (_, n) => {
      world.agent(`pump-${n}`);
      return client.agent(`pump-${n}`, SECRET);
    });
    const calls = pumps.flatMap((pump) =>
      Array.from({ length: 200 }, () => world.follow(pump.call("echo", [1]))),
    );
    await world.run(1_500);
    expect(calls.filter(({ times }) => times === 1)).toHaveLength(2_000);
  });
});
