/** A renewal of the session token, beside the old link: what passes through it, and what if not. */
import { describe, expect, it } from "vitest";
import type { ReadStream } from "./read-stream.ts";
import { collect, house, seqBytes, settle } from "./testing/streams.ts";
import { SECRET, World } from "./testing/world.ts";

const authsOf = (world: World) =>
  world.relay.received.map((text) => JSON.parse(text)).filter(({ type }) => type === "auth");

describe("a renewal of the session token", () => {
  it.each([1, 2, 3])(
    "loses no event and no byte, however fast the two links are (seed %i)",
    async (seed) => {
      const content = seqBytes(20_000);
      const { world, agent, relay, pump, state } = await house(content, 30);
      const random = new World(seed).ports.random;
      const seen: number[] = [];
      const told: string[] = [];
      pump.on("event", (_, data) => seen.push((data as { n: number }).n));
      pump.on("interrupted", (reason) => told.push(`interrupted: ${reason}`));
      pump.on("reopened", (reason) => told.push(`reopened: ${reason}`));
      pump.on("gap", (packets) => told.push(`gap ${packets}`));
      await world.run(1_000);
      let emitted = 0;
      const emit = () => {
        agent.emit("tick", { n: emitted++ });
        // From now on; a link keeps the time that it was opened with.
        relay.latencyMs = 1 + ((random(1)[0] as number) * 400) / 255;
        world.clock.set(37, emit);
      };
      emit();
      state.everyMs = 11;
      const reader = (await settle(world, pump.readStream("log.read"), 2_000)) as ReadStream;
      const reading = world.follow(collect(reader));
      const writing = world.follow(
        pump.writeStream("log.write").then(async (writer) => {
          for (let at = 0; at < content.length; at += 100) {
            await writer.write(content.subarray(at, at + 100));
            await new Promise<void>((resolve) => world.clock.set(300, resolve));
          }
          await writer.end();
        }),
      );
      await world.run(80_000);
      expect(authsOf(world).length).toBeGreaterThan(3);
      expect([told, reading.error, writing.error]).toEqual([[], undefined, undefined]);
      expect(writing.times).toBe(1);
      expect(seen).toEqual(Array.from({ length: seen.length }, (_, n) => n));
      expect(seen.length).toBeGreaterThan(2_000);
    },
  );

  it("names the token that it renews, and leaves the old link a second later", async () => {
    const world = new World();
    world.relay.sessionTtlS = 60;
    world.agent().handlers.set("slow", ({ answer }) => world.clock.set(5_000, () => answer(1)));
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await settle(world, pump.call("echo", []), 31_000);
    const slow = world.follow(pump.call("slow"));
    await world.run(300);
    expect(world.relay.connectionCount).toBe(2);
    await world.run(1_500);
    expect(world.relay.connectionCount).toBe(1);
    await world.run(5_000);
    expect(slow.result).toBe(1);
    const [first, second, ...others] = authsOf(world);
    expect(others).toEqual([]);
    expect(Object.keys(first)).toEqual(["type", "api_token", "client_type"]);
    expect(second.api_token).toBe(first.api_token);
    expect(second.renews).toMatch(/^sess_/);
  });

  it("is made on the only link where the relay does not know it, between two calls", async () => {
    const world = new World();
    world.relay.sessionTtlS = 60;
    world.relay.renews = false;
    world.agent().handlers.set("slow", ({ answer }) => world.clock.set(5_000, () => answer(1)));
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await settle(world, pump.call("echo", []), 31_000);
    const slow = world.follow(pump.call("slow"));
    await world.run(10_000);
    expect(slow.result).toBe(1);
    expect(await settle(world, pump.call("echo", [2]), 1_000)).toEqual([2]);
    expect(authsOf(world).map(({ renews }) => renews !== undefined)).toEqual([false, true, false]);
    expect(world.relay.connectionCount).toBe(1);
  });

  it("is given up with its link, and the calls go on over the old one", async () => {
    const world = new World();
    world.relay.sessionTtlS = 60;
    world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await settle(world, pump.call("echo", []), 31_000);
    world.relay.refuseAuth = () => ({ code: "UNAVAILABLE", error: "not now", retryAfter: 0 });
    expect(await settle(world, pump.call("echo", [1]), 1_000)).toEqual([1]);
    expect(world.relay.connectionCount).toBe(1);
  });
});
