/** What waits for the relay's rate, for a session token that ends, and for links that change. */
import { encodeRestarting } from "@blindrelay/protocol/wire";
import { describe, expect, it } from "vitest";
import type { Client } from "../client.ts";
import type { TimerPort } from "../ports.ts";
import { house, seqBytes, settle } from "../testing/streams.ts";
import { SECRET, World } from "../testing/world.ts";
import type { WriteStream } from "../write-stream.ts";
import {
  KNOWN_BINDINGS,
  MAX_TIMEOUT_MS,
  OVERDUE_MS,
  PACE_BURST,
  PACE_PER_SECOND,
  TOKEN_DRAIN_MS,
} from "./defaults.ts";

/** The client's own timers that are set. */
const timersOf = (world: World): Set<unknown> => {
  const { clock } = world;
  const set = new Set<unknown>();
  const timer: TimerPort = {
    now: () => clock.now(),
    set: (ms, fn) => {
      const handle = clock.set(ms, () => {
        set.delete(handle);
        fn();
      });
      set.add(handle);
      return handle;
    },
    clear: (handle) => {
      set.delete(handle);
      clock.clear(handle);
    },
  };
  Object.assign(world.ports, { timer });
  return set;
};

const authsOf = (world: World) =>
  world.relay.received.map((text) => JSON.parse(text)).filter(({ type }) => type === "auth");

it("calls beyond the relay's rate wait for their turn, and are all answered", async () => {
  const world = new World();
  const ids = Array.from({ length: 8 }, (_, n) => `agent-${n}`);
  for (const id of ids) world.agent(id);
  const client = await world.connected();
  const before = world.relay.received.length;
  const calls = Array.from({ length: 2_000 }, (_, n) =>
    world.follow(client.agent(ids[n % 8] as string, SECRET).call("echo", [n])),
  );
  await world.run(200);
  const sent = world.relay.received.length - before;
  expect(sent).toBeGreaterThan(PACE_BURST - 100);
  expect(sent).toBeLessThanOrEqual(PACE_BURST + PACE_PER_SECOND / 5);
  await world.run(1_000);
  expect(calls.map(({ result }) => result)).toEqual(calls.map((_, n) => [n]));
});

it("agents that do not answer get 256 calls at once, and do not hold up the calls to others", async () => {
  const world = new World();
  const client = await world.connected();
  let asked = 0;
  for (let n = 0; n < 10; n++) {
    world.agent(`mute-${n}`).handlers.set("ask", () => asked++);
    const mute = client.agent(`mute-${n}`, SECRET);
    for (let k = 0; k < 32; k++) world.follow(mute.call("ask"));
  }
  world.agent();
  await world.run(1_000);
  const answered = world.follow(client.agent("pump-7", SECRET).call("echo", [1]));
  await world.run(OVERDUE_MS - 1_000);
  expect([asked, answered.times]).toEqual([256, 0]);
  await world.run(1_000);
  expect(asked).toBe(320);
  expect(answered).toEqual({ times: 1, result: [1] });
});

it("calls that wait because others are not answered leave no timer when the client is closed", async () => {
  const world = new World();
  const timers = timersOf(world);
  const client = await world.connected();
  for (let n = 0; n < 9; n++) {
    world.agent(`mute-${n}`).handlers.set("ask", () => undefined);
    for (let k = 0; k < 32; k++) world.follow(client.agent(`mute-${n}`, SECRET).call("ask"));
  }
  await world.run(1_000);
  client.close();
  expect(timers.size).toBe(0);
});

it.each(["is idle", "waits to send again"])(
  "a session that %s leaves no timer when the client is closed",
  async (state) => {
    const world = new World();
    const timers = timersOf(world);
    world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    world.follow(pump.call("echo", [1]));
    await world.run(200);
    if (state === "waits to send again") world.relay.refuse = () => "UNAVAILABLE";
    world.follow(pump.call("echo", [2]));
    await world.run(100);
    client.close();
    expect(timers.size).toBe(0);
  },
);

it("10,000 calls may wait beside those in flight, and one more once one of them has ended", async () => {
  const world = new World();
  world.agent().handlers.set("ask", () => undefined);
  const client = await world.connected();
  const pump = client.agent("pump-7", SECRET);
  const inFlight = Array.from({ length: 32 }, () => world.follow(pump.call("ask")));
  await world.run(100);
  const leaving = new AbortController();
  const first = world.follow(pump.call("ask", [], { signal: leaving.signal }));
  const waiting = Array.from({ length: 9_999 }, (_, n) =>
    world.follow(pump.call("ask", [], { timeoutMs: 60_000 - n })),
  );
  const refused = world.follow(pump.call("ask"));
  await world.run(0);
  expect([...inFlight, first, ...waiting].every(({ times }) => times === 0)).toBe(true);
  expect(refused.error).toMatchObject({ code: "BUSY", message: "10000 calls wait already" });
  leaving.abort();
  const last = world.follow(pump.call("ask"));
  await world.run(0);
  expect(last.times).toBe(0);
  client.close();
  await world.run(0);
  expect(waiting.every(({ times, error }) => times === 1 && error?.code === "CLOSED")).toBe(true);
  expect(last.error?.message).toBe("the client was closed");
});

it("a call may have the shortest and the longest timeout, and none beyond", async () => {
  const world = new World();
  const pump = (await world.connected()).agent("pump-7", SECRET);
  const follow = (timeoutMs: number) => world.follow(pump.call("echo", [], { timeoutMs }));
  const calls = [0.5, 1, MAX_TIMEOUT_MS, MAX_TIMEOUT_MS + 1].map(follow);
  await world.run(1);
  expect(calls.map(({ error }) => error?.code)).toEqual([
    "BAD_ARGUMENT",
    "TIMED_OUT",
    undefined,
    "BAD_ARGUMENT",
  ]);
  expect(calls[0]?.error?.message).toBe(`timeoutMs must be 1 to ${MAX_TIMEOUT_MS}`);
});

it("a call may be as large as fits into a packet in the last place of a session", async () => {
  const world = new World();
  world.agent();
  const pump = (await world.connected()).agent("pump-7", SECRET);
  const around = `{"jsonrpc":"2.0","id":${2 ** 32},"expires":${2 ** 33},"method":"echo","params":[""]}`;
  const fits = "x".repeat(47_000 - around.length);
  expect(await settle(world, pump.call("echo", [fits]))).toEqual([fits]);
  const larger = await settle(world, pump.call("echo", [`${fits}x`]));
  expect(larger).toMatchObject({
    code: "TOO_LARGE",
    message: "the call is over 47000 bytes as JSON",
  });
});

it("a call that passed its deadline is not made again, though it may run twice", async () => {
  const world = new World();
  const agent = world.agent();
  const pump = (await world.connected()).agent("pump-7", SECRET);
  agent.handlers.set("never", () => undefined);
  const call = world.follow(pump.call("never", [], { idempotent: true, timeoutMs: 1_000 }));
  await world.run(60_000);
  expect(call.error?.code).toBe("TIMED_OUT");
  expect([call.times, agent.executed]).toEqual([1, ["never:[]"]]);
});

describe("a call that was sent and aborted", () => {
  const aborted = async () => {
    const world = new World();
    const agent = world.agent();
    agent.handlers.set("never", () => undefined);
    const pump = (await world.connected()).agent("pump-7", SECRET);
    const leaving = new AbortController();
    const options = { idempotent: true, signal: leaving.signal, timeoutMs: 5_000 };
    const call = world.follow(pump.call("never", [], options));
    await world.run(200);
    leaving.abort();
    await world.run(200);
    expect(call.error?.message).toBe("never was aborted");
    return { world, agent, pump };
  };

  it("is not made again when its session ends, though it may run twice", async () => {
    const { world, agent } = await aborted();
    agent.dropSession();
    await world.run(10_000);
    expect(agent.executed).toEqual(["never:[]"]);
  });

  it("still ends its session at its deadline, so that no late answer is another call's", async () => {
    const { world, agent } = await aborted();
    await world.run(4_000);
    expect(agent.sessions.held()).toHaveLength(1);
    await world.run(2_000);
    expect(agent.sessions.held()).toHaveLength(0);
  });
});

it("a stream does not wait for an agent that is offline", async () => {
  const { world, agent, pump } = await house();
  agent.goOffline();
  const writer = world.follow(pump.writeStream("log.write"));
  const reader = world.follow(pump.readStream("log.read"));
  await world.run(500);
  expect([writer, reader].map(({ error }) => error?.code)).toEqual(Array(2).fill("AGENT_OFFLINE"));
});

it("streams have numbers from 1 on, each its own", async () => {
  const pump = (await new World().connected()).agent("pump-7", SECRET);
  expect([pump.streamNumber(), pump.streamNumber(), pump.streamNumber()]).toEqual([1, 2, 3]);
});

it("an error of the relay that is about no session is logged, and ends nothing", async () => {
  const world = new World();
  world.agent();
  const pump = (await world.connected()).agent("pump-7", SECRET);
  const lines: unknown[] = [];
  Object.assign(world.ports, { log: (...line: unknown[]) => lines.push(line) });
  world.relay.sayToAll('{"type":"error","code":"BAD_MESSAGE","error":"not understood"}');
  expect(await settle(world, pump.call("echo", [1]), 200)).toEqual([1]);
  const fields = { code: "BAD_MESSAGE", error: "not understood" };
  expect(lines).toEqual([["warn", "the relay reports an error", fields]]);
});

describe("what the relay knows of a session", () => {
  const isEnveloped = (world: World): boolean =>
    Object.hasOwn(JSON.parse(world.relay.received.at(-1) ?? "{}"), "type");

  /** Sessions that are never answered, each with an agent of its own. */
  const openOthers = async (world: World, client: Client, count: number, name: string) => {
    world.relay.toAgent = (id) => (id === "pump-7" ? 5 : null);
    for (let n = 0; n < count; n++) {
      world.relay.known.add(`${name}-${n}`);
      world.relay.agents.set(`${name}-${n}`, { receive: () => undefined });
      world.follow(client.agent(`${name}-${n}`, SECRET).call("echo"));
    }
    // Before any of them is opened again, which is a use too.
    await world.run(100);
  };

  it("is refreshed by what its agent sends, so that the next packet goes bare", async () => {
    const world = new World();
    const agent = world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await settle(world, pump.call("echo", []), 200);
    await openOthers(world, client, KNOWN_BINDINGS / 2, "a");
    agent.emit("level", 1);
    await world.run(100);
    await openOthers(world, client, KNOWN_BINDINGS / 2, "b");
    expect(await settle(world, pump.call("echo", [1]), 200)).toEqual([1]);
    expect(isEnveloped(world)).toBe(false);
  });

  it("may be dropped where there are more than it holds, so each packet has an envelope", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await settle(world, pump.call("echo", []), 200);
    await openOthers(world, client, 1_023, "a");
    await settle(world, pump.call("echo", []), 200);
    await settle(world, pump.call("echo", []), 200);
    expect(isEnveloped(world)).toBe(false);
    await openOthers(world, client, 1, "b");
    await settle(world, pump.call("echo", []), 200);
    await settle(world, pump.call("echo", []), 200);
    expect(isEnveloped(world)).toBe(true);
  });

  it("is not assumed of the node to which the client moves", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await settle(world, pump.call("echo", []), 200);
    world.relay.sayToAll(encodeRestarting("The relay restarts", 0));
    await world.run(10_000);
    world.relay.received.length = 0;
    expect(await settle(world, pump.call("echo", [1]), 200)).toEqual([1]);
    const isFirstEnveloped = Object.hasOwn(JSON.parse(world.relay.received[0] ?? "{}"), "type");
    expect([world.relay.received.length, isFirstEnveloped]).toEqual([2, true]);
  });
});

describe("a session token that ends during a call, with a relay that does not renew it", () => {
  const busy = async () => {
    const world = new World();
    const timers = timersOf(world);
    world.relay.sessionTtlS = 60;
    world.relay.renews = false;
    let answerSlow = () => {};
    world.agent().handlers.set("slow", ({ answer }) => {
      answerSlow = () => answer(1);
    });
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await world.run(20_000);
    const slow = world.follow(pump.call("slow", [], { timeoutMs: 60_000 }));
    await world.run(14_000);
    return { world, timers, client, pump, slow, answerSlow: () => answerSlow() };
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

  it("is replaced once, as soon as that call has ended", async () => {
    const { world, pump, slow, answerSlow } = await busy();
    await world.run(12_000);
    const calls = [0, 1].map((n) => world.follow(pump.call("echo", [n])));
    await world.run(1_000);
    expect(calls.map(({ times }) => times)).toEqual([0, 0]);
    answerSlow();
    await world.run(200);
    expect([slow, ...calls].map(({ result }) => result)).toEqual([1, [0], [1]]);
    await world.run(TOKEN_DRAIN_MS + 2_000);
    expect(authsOf(world)).toHaveLength(3);
  });

  it("leaves no timer if the client is closed meanwhile", async () => {
    const { world, timers, client, pump } = await busy();
    await world.run(12_000);
    world.follow(pump.call("echo", []));
    await world.run(1_000);
    const lines: unknown[] = [];
    Object.assign(world.ports, { log: (...line: unknown[]) => lines.push(line) });
    client.close();
    client.close();
    expect([timers.size, lines.length]).toEqual([0, 1]);
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

  it("is made once the link that was left for another node is gone", async () => {
    const world = new World();
    world.relay.sessionTtlS = 60;
    world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await settle(world, pump.call("echo", []), 42_500);
    world.relay.sayToAll(encodeRestarting("The relay restarts", 0));
    await world.run(2_500);
    const call = world.follow(pump.call("echo", [1], { timeoutMs: 30_000 }));
    await world.run(5_000);
    expect(call).toEqual({ times: 1, result: [1] });
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
