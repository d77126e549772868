/** Calls that the agent refuses as too late, and moving on to another session (section 2). */
import { describe, expect, it } from "vitest";
import type { AgentOptions } from "../client.ts";
import type { ReadStream } from "../read-stream.ts";
import { house, seqBytes, settle } from "../testing/streams.ts";
import { SECRET, World } from "../testing/world.ts";

const HOUR_MS = 3_600_000;

const openings = (world: World): number => {
  const firsts = world.relay.received
    .map((text) => JSON.parse(text))
    .map((message) => (message.type === "relay" ? JSON.parse(message.payload) : message))
    .filter(({ sid }) => sid !== undefined)
    .map(({ sid }) => sid.split(".")[0]);
  return new Set(firsts).size;
};

/** `rate`: how fast the device's clock is. At 3, calls are refused once a session is old enough. */
const talking = async (rate: number, options: AgentOptions = {}) => {
  const world = new World();
  world.relay.sessionTtlS = 365 * 86_400;
  const agent = world.agent();
  agent.rate = rate;
  agent.handlers.set("never", () => undefined);
  const client = await world.connected();
  const pump = client.agent("pump-7", SECRET, options);
  const told: unknown[] = [];
  pump.on("interrupted", (reason) => told.push(`interrupted: ${reason}`));
  pump.on("reopened", (reason) => told.push(`reopened: ${reason}`));
  pump.on("gap", (count, of) => told.push([count, of]));
  expect(await settle(world, pump.call("echo", ["hello"]), 200)).toEqual(["hello"]);
  return { world, agent, client, pump, told };
};

/** What is dribbled has no end. */
const readAll = async (reader: ReadStream, length: number): Promise<number[]> => {
  const all: number[] = [];
  while (all.length < length) all.push(...((await reader.read()) ?? []));
  reader.cancel();
  return all;
};

describe("a request's `expires`", () => {
  it("is its deadline, counted from the answer to the session's first ping", async () => {
    const { world, agent, pump } = await talking(1);
    pump.on("event", () => undefined);
    const left: number[] = [];
    agent.handlers.set("read", ({ expires, ageMs, answer }) => {
      left.push((expires as number) - ageMs);
      answer(expires);
    });
    for (const [waitMs, timeoutMs] of [
      [0, 5_000],
      [20 * HOUR_MS, 5_000],
      [0, 2 ** 31 - 1],
      [0, 1_000.5],
    ]) {
      await world.run(waitMs as number);
      expect(await settle(world, pump.call("read", [], { timeoutMs }), 100)).toBeTypeOf("number");
    }
    // The answer to the ping came 5 ms after the session was stored; the call took 10 ms.
    expect(left).toEqual([4_985, 4_985, 2 ** 31 - 1 - 15, 985]);
    expect(openings(world)).toBe(1);
  });

  it("is missing from pings and notifications", async () => {
    const { world, agent, pump } = await talking(1);
    const said: string[] = [];
    const receive = agent.sessions.receive.bind(agent.sessions);
    agent.sessions.receive = (text, now) => {
      const verdict = receive(text, now);
      if (verdict.kind === "message") said.push(new TextDecoder().decode(verdict.plaintext));
      return verdict;
    };
    const off = pump.on("event", () => undefined);
    await world.run(60_000);
    off();
    await world.run(100_000);
    expect(said.map((text) => JSON.parse(text).method)).toEqual(["system.ping", "system.close"]);
    expect(said.filter((text) => text.includes("expires"))).toEqual([]);
  });

  it("keeps what a relay held back from running", async () => {
    const { world, agent, pump } = await talking(1);
    let release: () => void = () => undefined;
    world.relay.toAgent = (_id, text) => {
      release = () => agent.receive(text);
      world.relay.toAgent = () => null;
      return null;
    };
    const call = world.follow(pump.call("echo", ["door"], { timeoutMs: 5_000 }));
    await world.run(90_000);
    release();
    expect(call.error).toMatchObject({ code: "TIMED_OUT", retryable: false });
    expect([agent.executed, agent.late]).toEqual([['echo:["hello"]'], 1]);
  });
});

describe("a call that the agent refuses as too late", () => {
  it("before its deadline runs once, in a new session", async () => {
    const { world, agent, pump } = await talking(1.02);
    pump.on("event", () => undefined);
    await world.run(20 * HOUR_MS);
    const call = world.follow(pump.call("echo", [1], { timeoutMs: 5_000 }));
    await world.run(200);
    expect(call).toEqual({ times: 1, result: [1] });
    expect([agent.late, agent.executed]).toEqual([1, ['echo:["hello"]', "echo:[1]"]]);
    expect(openings(world)).toBe(2);
    expect(agent.sessions.held()).toHaveLength(1);
  });

  it("runs at once where the clock is slow or exact", async () => {
    for (const rate of [0.98, 1]) {
      const { world, agent, pump } = await talking(rate);
      pump.on("event", () => undefined);
      await world.run(20 * HOUR_MS);
      expect(await settle(world, pump.call("echo", [1], { timeoutMs: 5_000 }), 200)).toEqual([1]);
      expect([agent.late, openings(world)]).toEqual([0, 1]);
    }
  });

  it("runs once if the relay delayed the answer to the first ping", async () => {
    const world = new World();
    const agent = world.agent();
    const pump = (await world.connected()).agent("pump-7", SECRET);
    let answers = 0;
    world.relay.toClient = () => (++answers === 2 ? 4_500 : 5);
    expect(await settle(world, pump.call("echo", [0]), 5_000)).toEqual([0]);
    expect(await settle(world, pump.call("echo", [1], { timeoutMs: 4_000 }), 200)).toEqual([1]);
    expect([agent.late, agent.executed]).toEqual([1, ["echo:[0]", "echo:[1]"]]);
  });

  it("twice ends as TIMED_OUT, did not run, is retryable, and is not made a third time", async () => {
    const { world, agent, pump } = await talking(50);
    const call = world.follow(pump.call("echo", [1], { timeoutMs: 700 }));
    await world.run(500);
    expect(call.error).toMatchObject({ code: "TIMED_OUT", retryable: true });
    expect(call.error?.message).toContain("timed out, did not run");
    expect(call.error?.remote).toBeUndefined();
    await world.run(5_000);
    expect([call.times, agent.late, agent.executed.length]).toEqual([1, 2, 1]);
  });

  it("after its deadline ends so too, and is not made again", async () => {
    const { world, agent, pump } = await talking(50);
    const call = world.follow(pump.call("echo", [1], { timeoutMs: 700 }));
    await world.run(12);
    expect([agent.late, call.times]).toEqual([1, 0]);
    // The process was suspended: it reads the answer before its timers.
    world.clock.jump(2_000);
    await world.run(1_000);
    expect(call).toMatchObject({ times: 1, error: { code: "TIMED_OUT", retryable: true } });
    expect([agent.late, agent.executed.length, openings(world)]).toEqual([1, 1, 1]);
  });

  it("says that it did not run if its deadline passes before the new session is open", async () => {
    const { world, agent, pump } = await talking(3);
    await world.run(10_000);
    world.relay.toAgent = (_id, text) => (JSON.parse(text).sid.includes(".") ? 5 : null);
    const call = world.follow(pump.call("echo", [1], { timeoutMs: 5_000 }));
    await world.run(5_000);
    expect(call.error).toMatchObject({ code: "TIMED_OUT", retryable: true });
    expect(call.error?.message).toContain("did not run");
    expect(agent.executed).toHaveLength(1);
  });

  it("keeps its place: several are made again in their order, before later ones", async () => {
    const { world, agent, pump } = await talking(3);
    await world.run(10_000);
    const calls = [1, 2, 3].map((n) => world.follow(pump.call("echo", [n], { timeoutMs: 5_000 })));
    await world.run(21);
    calls.push(world.follow(pump.call("echo", [4], { timeoutMs: 5_000 })));
    await world.run(200);
    expect(calls.map(({ result }) => result)).toEqual([[1], [2], [3], [4]]);
    expect(agent.late).toBe(3);
    expect(agent.executed.slice(1)).toEqual(["echo:[1]", "echo:[2]", "echo:[3]", "echo:[4]"]);
  });

  it("is not made again for a caller who has left", async () => {
    const { world, agent, pump } = await talking(3);
    await world.run(10_000);
    const leaving = new AbortController();
    const options = { timeoutMs: 5_000, signal: leaving.signal };
    const call = world.follow(pump.call("echo", [1], options));
    await world.run(1);
    leaving.abort();
    await world.run(5_000);
    expect([call.times, call.error?.code, agent.executed.length]).toEqual([1, "ABORTED", 1]);
  });

  it("opens its stream in the new session, and the old one is left", async () => {
    const { world, agent, pump, state, kept } = await house(seqBytes(100));
    agent.rate = 3;
    state.everyMs = 20;
    await settle(world, pump.call("echo", []), 10_000);
    const opening = pump.readStream("log.read", {}, { timeoutMs: 5_000 });
    const reading = world.follow(opening.then((reader) => readAll(reader, 100)));
    await world.run(5_000);
    expect(reading).toEqual({ times: 1, result: [...seqBytes(100)] });
    expect([agent.late, agent.sessions.held().length]).toEqual([1, 1]);
    await world.run(10_000);
    const writing = world.follow(
      pump.writeStream("log.write", {}, { timeoutMs: 5_000 }).then(async (writer) => {
        await writer.write(seqBytes(3_000));
        await writer.end();
      }),
    );
    await world.run(5_000);
    expect(writing).toEqual({ times: 1, result: undefined });
    expect(kept).toEqual([...seqBytes(3_000)]);
    expect([agent.late, agent.sessions.held().length]).toEqual([2, 1]);
  });
});

describe("a session that was moved on from", () => {
  it("answers its calls in flight, and ends with the last one", async () => {
    const { world, agent, pump } = await talking(3);
    agent.handlers.set("slow", ({ answer }) => world.clock.set(30_000, () => answer("done")));
    const slow = world.follow(pump.call("slow", [], { timeoutMs: 100_000 }));
    await world.run(10_000);
    expect(await settle(world, pump.call("echo", [1], { timeoutMs: 5_000 }), 200)).toEqual([1]);
    expect([agent.late, agent.sessions.held().length]).toEqual([1, 2]);
    await world.run(25_000);
    expect(slow).toEqual({ times: 1, result: "done" });
    expect(agent.sessions.held()).toHaveLength(1);
  });

  it("keeps its streams", async () => {
    const content = seqBytes(2_000);
    const { world, agent, pump, state } = await house(content);
    agent.rate = 3;
    state.everyMs = 20;
    const reader = (await settle(world, pump.readStream("log.read"), 10_000)) as ReadStream;
    const reading = world.follow(readAll(reader, content.length));
    expect(await settle(world, pump.call("echo", [1], { timeoutMs: 5_000 }), 200)).toEqual([1]);
    expect(agent.sessions.held()).toHaveLength(2);
    await world.run(40_000);
    expect(reading).toEqual({ times: 1, result: [...content] });
    expect(agent.sessions.held()).toHaveLength(1);
  });

  it.each([1, 2, 3, 4, 5])(
    "and the one after it deliver every event once (every %i ms)",
    async (everyMs) => {
      const { world, agent, pump, told } = await talking(3);
      const seen: unknown[] = [];
      const off = pump.on("event", (_, data) => seen.push((data as [number])[0]));
      await world.run(1_000);
      let emitted = 0;
      const emit = () => {
        if (emitted === 3_000) return;
        agent.emit("tick", [emitted++]);
        world.clock.set(everyMs, emit);
      };
      emit();
      for (let second = 0; second < 15; second++) {
        await settle(world, pump.call("echo", [second], { timeoutMs: 900 }), 1_000);
      }
      expect(agent.late).toBeGreaterThan(5);
      expect(told).toEqual([]);
      expect(seen).toEqual(Array.from({ length: emitted }, (_, n) => n));
      off();
      await world.run(200);
      expect(agent.sessions.held()).toHaveLength(1);
    },
  );

  it("counts the events that the agent could not send, once", async () => {
    const { world, agent, pump, told } = await talking(1, { renewAfterMs: 60_000 });
    pump.on("event", () => undefined);
    world.follow(pump.call("never", [], { timeoutMs: 1_000_000 }));
    await world.run(100_000);
    await settle(world, pump.call("echo", []), 100);
    expect(agent.sessions.held()).toHaveLength(2);
    agent.emit("system.lost", { events: 3 });
    await world.run(100);
    expect(told).toEqual([[3, "events"]]);
  });

  it("delivers events for as long as the new one does not open", async () => {
    const { world, agent, pump, told } = await talking(1, { renewAfterMs: 60_000 });
    const seen: unknown[] = [];
    pump.on("event", (event) => seen.push(event));
    await world.run(59_000);
    world.relay.toAgent = (_id, text) => (JSON.parse(text).sid.includes(".") ? 5 : null);
    for (let n = 0; n < 300; n++) {
      agent.emit("tick", []);
      await world.run(1_000);
    }
    expect([seen.length, told]).toEqual([300, []]);
  });

  it("ends 24 hours later at the latest, and there are at most four", async () => {
    const { world, agent, pump } = await talking(1, { renewAfterMs: 60_000 });
    const options = { timeoutMs: 30 * HOUR_MS };
    const calls = [];
    for (let n = 0; n < 8; n++) {
      calls.push(world.follow(pump.call("never", [n], options)));
      await world.run(61_000);
    }
    expect(calls.map(({ error }) => error?.code)).toEqual([
      ...Array(3).fill("OUTCOME_UNKNOWN"),
      ...Array(5).fill(undefined),
    ]);
    expect(agent.sessions.held()).toHaveLength(5);
    await settle(world, pump.call("echo", []), 24 * HOUR_MS);
    expect(calls.map(({ error }) => error?.code)).toEqual(Array(8).fill("OUTCOME_UNKNOWN"));
  });

  it("does not come back when the agent has restarted", async () => {
    const { world, agent, client, pump } = await talking(1, { renewAfterMs: 60_000 });
    const lost = world.follow(pump.call("never", [], { timeoutMs: 1_000_000 }));
    await world.run(61_000);
    await settle(world, pump.call("echo", []), 100);
    expect(openings(world)).toBe(2);
    agent.restart();
    agent.goOnline();
    await world.run(2_000);
    expect(lost.error?.code).toBe("OUTCOME_UNKNOWN");
    expect(await settle(world, pump.call("echo", [2]), 100)).toEqual([2]);
    expect([openings(world), agent.sessions.held().length]).toEqual([3, 1]);
    client.close();
    await world.run(100_000);
    expect(world.clock.pending).toBe(0);
  });
});

describe("a subscriber's session", () => {
  it.each([
    ["24 h", {}, 24 * HOUR_MS],
    ["an hour", { renewAfterMs: HOUR_MS }, HOUR_MS],
  ])("is renewed after %s without a call, and nobody notices", async (_what, options, afterMs) => {
    const { world, agent, pump, told } = await talking(1, options);
    const seen: unknown[] = [];
    pump.on("event", (event) => seen.push(event));
    await world.run(afterMs - 60_000);
    expect(openings(world)).toBe(1);
    await world.run(120_000);
    expect(openings(world)).toBe(2);
    agent.emit("tick", []);
    await world.run(100);
    expect([seen, told, agent.sessions.held().length]).toEqual([["tick"], [], 1]);
  });
});
