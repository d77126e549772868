/** What waits for the relay's rate, for a session token that ends, and for links that change. */
import { describe, expect, it } from "vitest";
import { house, seqBytes, settle } from "../testing/streams.ts";
import { SECRET, World } from "../testing/world.ts";
import type { WriteStream } from "../write-stream.ts";
import { PACE_BURST, PACE_PER_SECOND, TOKEN_DRAIN_MS } from "./defaults.ts";

const authsOf = (world: World) =>
  world.relay.received.map((text) => JSON.parse(text)).filter(({ type }) => type === "auth");

it("calls beyond the relay's rate wait for their turn, and are all answered", async () => {
  const world = new World();
  const ids = Array.from({ length: 8 }, (_, n) => `agent-${n}`);
  for (const id of ids) world.agent(id);
  const client = await world.connected();
  const before = world.relay.received.length;
  const calls = Array.from({ length: 1_600 }, (_, n) =>
    world.follow(client.agent(ids[n % 8] as string, SECRET).call("echo", [n])),
  );
  await world.run(200);
  const sent = world.relay.received.length - before;
  expect(sent).toBeGreaterThan(PACE_BURST - 100);
  expect(sent).toBeLessThanOrEqual(PACE_BURST + PACE_PER_SECOND / 5);
  await world.run(1_000);
  expect(calls.map(({ result }) => result)).toEqual(calls.map((_, n) => [n]));
});

describe("a session token that ends during a call, with a relay that does not renew it", () => {
  const busy = async () => {
    const world = new World();
    world.relay.sessionTtlS = 60;
    world.relay.renews = false;
    world.agent().handlers.set("slow", ({ answer }) => world.clock.set(50_000, () => answer(1)));
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await world.run(20_000);
    const slow = world.follow(pump.call("slow", [], { timeoutMs: 60_000 }));
    await world.run(14_000);
    return { world, pump, slow };
  };

  it("lets other calls through until it is nearly over", async () => {
    const { world, pump, slow } = await busy();
    for (let n = 0; n < 4; n++) {
      expect(await settle(world, pump.call("echo", [n]), 1_000)).toEqual([n]);
    }
    expect([slow.times, world.relay.connectionCount]).toEqual([0, 1]);
  });

  it("is then replaced within ten seconds, which other calls wait for", async () => {
    const { world, pump, slow } = await busy();
    await world.run(12_000);
    const calls = [0, 1].map((n) => world.follow(pump.call("echo", [n])));
    await world.run(TOKEN_DRAIN_MS - 1_000);
    expect([slow, ...calls].map(({ times }) => times)).toEqual([0, 0, 0]);
    await world.run(2_000);
    expect(calls.map(({ result }) => result)).toEqual([[0], [1]]);
    expect(slow.error?.code).toBe("OUTCOME_UNKNOWN");
    expect(authsOf(world).map(({ renews }) => renews !== undefined)).toEqual([false, true, false]);
  });
});

it("a writer is held until both sides are silent, and goes on with a new session token", async () => {
  const { world, relay, pump, kept } = await house(undefined, 700);
  relay.renews = false;
  const writer = (await settle(world, pump.writeStream("log.write"), 1_000)) as WriteStream;
  for (let n = 0; n < 80; n++) await settle(world, writer.write(Uint8Array.of(n)), 5_000);
  await settle(world, writer.end(), 1_000);
  expect(kept).toEqual(Array.from({ length: 80 }, (_, n) => n));
  expect(authsOf(world).map(({ renews }) => renews !== undefined)).toEqual([false, true, false]);
});

it("a writer that is held for a new session token goes on if a call keeps the link busy", async () => {
  const { world, agent, relay, pump, kept } = await house(undefined, 700);
  relay.renews = false;
  agent.handlers.set("slow", ({ answer }) => world.clock.set(60_000, () => answer(1)));
  const writer = (await settle(world, pump.writeStream("log.write"), 1_000)) as WriteStream;
  await settle(world, writer.write(seqBytes(10)), 360_000);
  const slow = world.follow(pump.call("slow", [], { timeoutMs: 100_000 }));
  await world.run(1_000);
  const [first, ...rest] = seqBytes(30);
  void writer.write(Uint8Array.of(first as number));
  await world.run(500);
  void writer.write(Uint8Array.from(rest));
  await world.run(TOKEN_DRAIN_MS - 3_000);
  expect(kept).toHaveLength(10);
  await world.run(4_000);
  expect(kept).toEqual([...seqBytes(10), ...seqBytes(30)]);
  await world.run(60_000);
  expect(slow.result).toBe(1);
  await settle(world, writer.end(), 1_000);
});

describe("a renewal of the session token on a second link", () => {
  it("waits a second for an event that was lost, then delivers the next and tells of a gap", async () => {
    const world = new World();
    world.relay.sessionTtlS = 60;
    const agent = world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const heard: unknown[] = [];
    pump.on("event", (_event, data) => heard.push(data));
    pump.on("gap", (missing) => heard.push({ missing }));
    await settle(world, pump.call("echo", []), 31_000);
    const call = world.follow(pump.call("echo", [1]));
    await world.run(300);
    expect([call.result, world.relay.connectionCount]).toEqual([[1], 2]);
    world.relay.toClient = () => null;
    agent.emit("level", "lost");
    await world.run(1);
    world.relay.toClient = () => 5;
    agent.emit("level", "kept");
    await world.run(300);
    expect(heard).toEqual([]);
    await world.run(1_000);
    expect(heard).toEqual([{ missing: 1 }, "kept"]);
  });

  it("is made on the only link once three attempts have failed", async () => {
    const world = new World();
    world.relay.sessionTtlS = 600;
    world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await settle(world, pump.call("echo", []), 301_000);
    let refusals = 0;
    world.relay.refuseAuth = () => {
      refusals += 1;
      return refusals > 3 ? null : { code: "UNAVAILABLE", error: "not now", retryAfter: 0 };
    };
    for (let n = 0; n < 60; n++) {
      expect(await settle(world, pump.call("echo", [n]), 2_000)).toEqual([n]);
    }
    expect(authsOf(world).map(({ renews }) => renews !== undefined)).toEqual([
      false,
      true,
      true,
      true,
      false,
    ]);
    expect(world.relay.connectionCount).toBe(1);
  });

  it("is not asked for in a loop while a call waits for it", async () => {
    const world = new World();
    world.relay.sessionTtlS = 600;
    world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await world.run(585_000);
    let refusals = 0;
    world.relay.refuseAuth = () => {
      refusals += 1;
      return refusals > 3 ? null : { code: "UNAVAILABLE", error: "busy", retryAfter: 0 };
    };
    const call = world.follow(pump.call("echo", [1], { timeoutMs: 10_000 }));
    await world.run(2_500);
    expect([refusals, call.times]).toEqual([2, 0]);
    await world.run(2_500);
    expect(call).toEqual({ times: 1, result: [1] });
    expect(refusals).toBe(4);
  });
});
