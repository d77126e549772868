/** A call as its caller sees it: every outcome in CALL_ERRORS, and what the relay saw. */
import { utf8Bytes } from "@blindrelay/protocol/crypto";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { CALL_ERRORS, CallError } from "./errors.ts";
import { SECRET, testToken, World } from "./testing/world.ts";

const packetsOf = (world: World) =>
  world.relay.received
    .map((text) => JSON.parse(text))
    .filter((message) => message.type === "relay" || message.type === undefined);

describe("a call", () => {
  it("is answered by the agent", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    const call = world.follow(client.agent("pump-7", SECRET).call("echo", { percent: 40 }));
    await world.run(200);
    expect(call).toEqual({ times: 1, result: { percent: 40 } });
  });

  it("sends a ping first, and nothing else before its answer", async () => {
    const world = new World();
    const agent = world.agent();
    const sizes: number[] = [];
    world.relay.toAgent = (_id, text) => {
      sizes.push(JSON.parse(text).seq);
      return sizes.length === 2 ? 500 : 5;
    };
    const client = await world.connected();
    world.follow(client.agent("pump-7", SECRET).call("echo"));
    await world.run(400);
    expect(sizes).toEqual([0, 1]);
    expect(agent.executed).toEqual([]);
    await world.run(400);
    expect(agent.pings).toBe(1);
    expect(agent.executed).toEqual(["echo:undefined"]);
  });

  it("puts the first message of a sid in an envelope and later ones bare", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    world.follow(client.agent("pump-7", SECRET).call("echo"));
    await world.run(200);
    const packets = packetsOf(world);
    expect(packets.map(({ type }) => type)).toEqual(["relay", undefined, undefined]);
    expect(packets[0].agent_id).toBe("pump-7");
    expect(packets[0].request_id).toMatch(/^[\w-]{12,64}$/);
  });

  it("shares one session with other calls, answered in any order", async () => {
    const world = new World();
    const agent = world.agent();
    const waiting: (() => void)[] = [];
    agent.handlers.set("slow", ({ params, answer }) => waiting.unshift(() => answer(params)));
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const calls = [1, 2, 3].map((n) => world.follow(pump.call("slow", [n])));
    await world.run(200);
    for (const answer of waiting) answer();
    await world.run(200);
    expect(calls.map(({ result }) => result)).toEqual([[1], [2], [3]]);
    expect(agent.sessions.held()).toHaveLength(1);
  });

  it("carries null, and non-ASCII text in both directions", async () => {
    const world = new World();
    const agent = world.agent();
    agent.handlers.set("nothing", ({ answer }) => answer(null));
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const nothing = world.follow(pump.call("nothing"));
    const text = world.follow(pump.call("echo", { ключ: "höchst – 🜁" }));
    await world.run(200);
    expect(nothing).toEqual({ times: 1, result: null });
    expect(text.result).toEqual({ ключ: "höchst – 🜁" });
  });

  it("rejects with the agent's own error", async () => {
    const world = new World();
    const agent = world.agent();
    agent.handlers.set("valve", ({ fail }) => fail(-32000, "stuck", { at: 3 }));
    const client = await world.connected();
    const call = world.follow(client.agent("pump-7", SECRET).call("valve"));
    await world.run(200);
    expect(call.error).toMatchObject({
      code: "REMOTE",
      retryable: false,
      remote: { code: -32000, message: "stuck", data: { at: 3 } },
    });
  });

  it("rejects with BAD_ANSWER if the verified answer is not a response", async () => {
    const world = new World();
    const agent = world.agent();
    agent.handlers.set("odd", () => {
      agent.say(agent.sessions.held()[0] as string, { id: 2, error: "no object" });
    });
    const client = await world.connected();
    const call = world.follow(client.agent("pump-7", SECRET).call("odd"));
    await world.run(200);
    expect(call.error?.code).toBe("BAD_ANSWER");
  });

  // erwindon/SaltGUI#963, jqlang/jq#1652
  it("refuses numbers that a double does not hold, and what JSON lacks", async () => {
    const world = new World();
    const agent = world.agent();
    const sayText = (text: string): void => {
      const packet = agent.sessions.seal(agent.sessions.held()[0] as string, utf8Bytes(text));
      world.relay.fromAgent("pump-7", packet as string);
    };
    let number = "";
    agent.handlers.set("card", () => {
      const id = 2 + numbers.indexOf(number);
      sayText(`{"jsonrpc":"2.0","id":${id},"result":{"id":${number},"text":"1e400"}}`);
    });
    const numbers = ["3791411052119578828", "1e400", "1E-400", "-9007199254740993"];
    numbers.push("9223372036854775808", "1e300", "0.12345678901234567890");
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const seen: unknown[] = [];
    pump.on("event", (_, data) => seen.push(data));
    pump.on("gap", (count, of) => seen.push([count, of]));
    for (number of numbers) {
      const call = world.follow(pump.call("card"));
      await world.run(200);
      if (numbers.indexOf(number) > 3) expect(call.result).toMatchObject({ id: Number(number) });
      else expect([call.error?.code, call.error?.message]).toMatchObject(["BAD_ANSWER", /./]);
      if (numbers.indexOf(number) < 4) expect(call.error?.message).toContain(number);
    }
    sayText('{"jsonrpc":"2.0","method":"card","params":{"id":3791411052119578828}}');
    sayText('{"jsonrpc":"2.0","method":"card","params":{"id":"3791411052119578828"}}');
    await world.run(200);
    expect(seen).toEqual([[1, "events"], { id: "3791411052119578828" }]);
    for (const [params, message] of [
      [{ celsius: [1, Number.NaN] }, "not a JSON value at /celsius/1"],
      [{ id: 3791411052119578828n }, "BigInt"],
    ] as const) {
      const call = world.follow(pump.call("echo", params));
      await world.run(200);
      expect(call.error?.code).toBe("BAD_ARGUMENT");
      expect(call.error?.message).toContain(message);
    }
  });

  it.each([
    ["arrays", "[", "]"],
    ["objects", '{"0":', "}"],
  ])("refuses %s that are nested too deeply to be written again", async (_, begin, end) => {
    const world = new World();
    const agent = world.agent();
    const nested = (levels: number): string => begin.repeat(levels) + 1 + end.repeat(levels);
    let member = "";
    const sayText = (text: string): void => {
      const packet = agent.sessions.seal(agent.sessions.held()[0] as string, utf8Bytes(text));
      world.relay.fromAgent("pump-7", packet as string);
    };
    let id = 2;
    agent.handlers.set("dig", () => sayText(`{"jsonrpc":"2.0","id":${id++},${member}}`));
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const seen: unknown[] = [];
    pump.on("event", (_, data) => seen.push(data));
    pump.on("gap", (count, of) => seen.push([count, of]));
    const dig = async (given: string) => {
      member = given;
      const call = world.follow(pump.call("dig"));
      await world.run(200);
      return call;
    };
    const text = JSON.stringify("[".repeat(9_000));
    expect((await dig(`"result":[${text},${nested(200)}]`)).result).toHaveLength(2);
    for (const given of ['"result":', '"error":{"code":1,"message":"x","data":']) {
      const closed = given.includes("error") ? "}" : "";
      const call = await dig(given + nested(7_000) + closed);
      expect(call.error?.code).toBe("BAD_ANSWER");
    }
    sayText(`{"jsonrpc":"2.0","method":"dug","params":[${nested(7_000)}]}`);
    await world.run(200);
    expect(seen).toEqual([[1, "events"]]);
  });

  it("accepts no answer that does not declare JSON-RPC 2.0", async () => {
    const world = new World();
    const agent = world.agent();
    agent.handlers.set("odd", ({ answer }) => {
      agent.say(agent.sessions.held()[0] as string, { jsonrpc: "1.0", id: 2, result: "other" });
      answer("ours");
    });
    const client = await world.connected();
    const call = world.follow(client.agent("pump-7", SECRET).call("odd"));
    await world.run(200);
    expect(call.result).toBe("ours");
  });

  // oven-sh/bun#8072
  it("alone ends if the suite throws, in an opening and in a session", async () => {
    const world = new World();
    world.agent();
    const fault = world.failingSuite(true);
    const pump = (await world.connected()).agent("pump-7", SECRET);
    const outcome = async () => {
      const call = world.follow(pump.call("echo", { n: 1 }));
      await world.run(200);
      return call;
    };
    const error = {
      code: "BAD_ARGUMENT",
      message: "echo could not be sealed: Unknown cipher",
      cause: { message: "Unknown cipher" },
    };
    expect(await outcome()).toMatchObject({ times: 1, error });
    fault.throws = false;
    expect(await outcome()).toMatchObject({ times: 1, result: { n: 1 } });
    fault.throws = true;
    expect(await outcome()).toMatchObject({ times: 1, error });
    fault.throws = false;
    expect(await outcome()).toMatchObject({ times: 1, result: { n: 1 } });
  });

  it("each ends if the suite throws, also beside others and a listener", async () => {
    const world = new World();
    world.agent();
    world.agent("other");
    const fault = world.failingSuite(true);
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const told: string[] = [];
    pump.on("interrupted", (reason) => told.push(reason));
    pump.on("reopened", () => told.push("reopened"));
    pump.on("event", () => undefined);
    expect(told).toEqual(["a session with pump-7 could not be opened: Unknown cipher"]);
    world.relay.cutAll();
    const calls = [1, 2, 3].map((n) => world.follow(pump.call("echo", [n])));
    await world.run(5_000);
    expect(calls.map(({ error }) => error?.code)).toEqual(calls.map(() => "BAD_ARGUMENT"));
    fault.throws = false;
    const other = world.follow(client.agent("other", SECRET).call("echo", [4]));
    await world.run(60_000);
    expect([other.result, told.length, told[1]]).toEqual([[4], 2, "reopened"]);
  });

  it("that cannot be sealed while a listener moves on interrupts it only until it has moved", async () => {
    const world = new World();
    const agent = world.agent();
    const fault = world.failingSuite(false);
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET, { renewAfterMs: 60_000 });
    const told: string[] = [];
    pump.on("interrupted", () => told.push("interrupted"));
    pump.on("reopened", () => told.push("reopened"));
    pump.on("event", (event) => told.push(event));
    await world.run(60_500);
    fault.throws = true;
    const call = world.follow(pump.call("echo", [1]));
    fault.throws = false;
    await world.run(1);
    expect(call.error?.code).toBe("BAD_ARGUMENT");
    agent.emit("level", 1);
    await world.run(30_000);
    expect(told).toEqual(["interrupted", "level", "reopened"]);
  });

  it("fails fast if the agent is offline or not ours, or the relay is unreachable", async () => {
    const world = new World();
    world.agent().goOffline();
    const client = await world.connected();
    const offline = world.follow(client.agent("pump-7", SECRET).call("echo"));
    const foreign = world.follow(client.agent("nobody", SECRET).call("echo"));
    await world.run(50);
    expect(offline.error).toMatchObject({ code: "AGENT_OFFLINE", retryable: true });
    expect(foreign.error).toMatchObject({ code: "AGENT_NOT_FOUND", retryable: false });
    world.relay.reachable = false;
    world.relay.cutAll();
    const away = world.follow(
      client.agent("pump-7", SECRET).call("echo", [], { timeoutMs: 3_000 }),
    );
    await world.run(3_000);
    expect(away.error).toMatchObject({ code: "UNREACHABLE", retryable: true });
  });

  it("works again once the agent is back", async () => {
    const world = new World();
    const agent = world.agent();
    agent.goOffline();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    world.follow(pump.call("echo"));
    await world.run(100);
    agent.goOnline();
    const call = world.follow(pump.call("echo", [1]));
    await world.run(100);
    expect(call.result).toEqual([1]);
  });

  it("times out on an agent with another secret, without having been sent", async () => {
    const world = new World();
    const agent = world.agent("pump-7", testToken("e2e", 9));
    const client = await world.connected();
    const call = world.follow(
      client.agent("pump-7", SECRET).call("echo", [], { timeoutMs: 5_000 }),
    );
    await world.run(4_999);
    expect(call.times).toBe(0);
    await world.run(1);
    expect(call.error).toMatchObject({ code: "TIMED_OUT", retryable: true });
    expect(call.error?.message).toContain("agent_token");
    expect(agent.executed).toEqual([]);
  });

  it("gives up its session at its deadline; others in flight have an unknown outcome", async () => {
    const world = new World();
    const agent = world.agent();
    agent.handlers.set("never", () => undefined);
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const late = world.follow(pump.call("never", [], { timeoutMs: 1_000 }));
    const other = world.follow(pump.call("never", [], { timeoutMs: 9_000 }));
    await world.run(500);
    const [sid] = agent.sessions.held();
    await world.run(500);
    expect(late.error).toMatchObject({ code: "TIMED_OUT", retryable: false });
    expect(other.error).toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: false });
    agent.say(sid as string, { id: 2, result: "too late" });
    const next = world.follow(pump.call("echo", [3]));
    await world.run(200);
    expect(next.result).toEqual([3]);
    expect(late.times + other.times).toBe(2);
  });

  it("is repeated within its own deadline if it is idempotent", async () => {
    const world = new World();
    const agent = world.agent();
    let asked = 0;
    agent.handlers.set("read", ({ answer }) => {
      asked++;
      if (asked > 1) answer(asked);
    });
    agent.handlers.set("never", () => undefined);
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const read = world.follow(pump.call("read", [], { idempotent: true }));
    world.follow(pump.call("never", [], { timeoutMs: 1_000 }));
    await world.run(2_000);
    expect(read).toEqual({ times: 1, result: 2 });
  });

  it("waits for the relay if it was not sent yet", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    world.relay.cutAll();
    const call = world.follow(client.agent("pump-7", SECRET).call("echo", [7]));
    await world.run(5_000);
    expect(call.result).toEqual([7]);
  });
});

describe("aborting", () => {
  it("rejects at once, sent or not, and nothing is mistaken for another call's answer", async () => {
    const world = new World();
    const agent = world.agent();
    let answer: (result: unknown) => void = () => undefined;
    agent.handlers.set("slow", (incoming) => {
      answer = incoming.answer;
    });
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const queued = new AbortController();
    const waiting = world.follow(pump.call("echo", ["no"], { signal: queued.signal }));
    queued.abort(new Error("changed my mind"));
    await world.run(200);
    expect(waiting.error).toMatchObject({
      code: "ABORTED",
      retryable: false,
      cause: new Error("changed my mind"),
    });
    expect(agent.executed).toEqual([]);

    const sent = new AbortController();
    const slow = world.follow(pump.call("slow", [], { signal: sent.signal }));
    await world.run(200);
    sent.abort();
    await world.run(0);
    expect(slow.error?.code).toBe("ABORTED");
    const next = world.follow(pump.call("echo", [1]));
    answer("ignored");
    await world.run(200);
    expect(next.result).toEqual([1]);
    expect(slow.times).toBe(1);
  });

  it("does nothing to a call that has ended", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    const controller = new AbortController();
    const { signal } = controller;
    const call = world.follow(client.agent("pump-7", SECRET).call("echo", [], { signal }));
    await world.run(200);
    controller.abort();
    await world.run(200);
    expect(call).toEqual({ times: 1, result: [] });
    const late = world.follow(client.agent("pump-7", SECRET).call("echo", [], { signal }));
    await world.run(1);
    expect(late.error?.code).toBe("ABORTED");
  });
});

describe("local mistakes", () => {
  it("are reported before anything is sent", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const loop: { self?: unknown } = {};
    loop.self = loop;
    const bad = [
      pump.call("echo", 5),
      pump.call("echo", "text"),
      pump.call("echo", null),
      pump.call(""),
      pump.call("echo", loop),
      pump.call("echo", { n: 1n }),
      pump.call("echo", new Date(0)),
      pump.call("echo", [], { timeoutMs: 0 }),
      pump.call("echo", [], { timeoutMs: Number.NaN }),
      pump.call("echo", [], { timeoutMs: "5000" as unknown as number }),
      pump.readStream("log.read", {}, { timeoutMs: Number.NaN }),
      pump.writeStream("log.write", {}, { timeoutMs: Number.POSITIVE_INFINITY }),
      pump.callWithStreams("log.read", {}, () => undefined, 0),
    ].map((promise) => world.follow(promise));
    const large = world.follow(pump.call("echo", ["x".repeat(47_000)]));
    const { signal } = new AbortController();
    const abortable = world.follow(pump.call("echo", 5, { signal }));
    await world.run(200);
    expect(abortable.error?.code).toBe("BAD_ARGUMENT");
    expect(bad.map(({ error }) => error?.code)).toEqual(bad.map(() => "BAD_ARGUMENT"));
    expect(large.error?.code).toBe("TOO_LARGE");
    expect(packetsOf(world)).toEqual([]);
  });

  it("are CallErrors where a text is missing, as from an unset variable", () => {
    const client = new World().client();
    const missing = undefined as unknown as string;
    const misuses = [
      () => client.agent("pump-7", missing),
      () => client.agent(missing, SECRET),
      () => new World().client({ url: missing }),
      () => new World().client({ accountToken: 7 as unknown as string }),
      () => new World().client({ sessionToken: 7 as unknown as string }),
    ];
    for (const misuse of misuses) {
      expect(misuse).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
    }
  });

  it("name both kinds if a secret of the wrong kind is passed", () => {
    const client = new World().client();
    const wrong = () => client.agent("pump-7", testToken("account", 1));
    expect(wrong).toThrow(CallError);
    expect(wrong).toThrow(/end-to-end secret.*account token/);
    const foreign = "a passphrase of somebody else, long enough";
    expect(() => client.agent("pump-7", foreign)).toThrow(/e2e_/);
    expect(client.agent("pump-7", foreign, { foreignSecret: true }).id).toBe("pump-7");
    expect(() => client.agent("pump-7", "short", { foreignSecret: true })).toThrow(/32/);
    expect(() => client.agent("pump 7", SECRET)).toThrow(/agent id/);
    expect(() => new World().client({ accountToken: SECRET })).toThrow(
      /account token.*end-to-end secret/,
    );
  });
});

describe("close", () => {
  it("ends a start that is under way", async () => {
    const world = new World();
    const client = world.client();
    const started = world.follow(client.start());
    await world.run(12);
    client.close();
    await world.run(60_000);
    expect([started.times, started.error?.code]).toEqual([1, "CLOSED"]);
  });

  it("ends every call once and leaves no timer", async () => {
    const world = new World();
    const agent = world.agent();
    agent.handlers.set("never", () => undefined);
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    pump.on("event", () => undefined);
    const sent = world.follow(pump.call("never", [], { idempotent: true }));
    await world.run(200);
    const queued = world.follow(client.agent("other", SECRET).call("echo"));
    client.close();
    const after = world.follow(pump.call("echo"));
    await world.run(40_000);
    expect([sent, queued, after].map(({ error }) => error?.code)).toEqual(Array(3).fill("CLOSED"));
    expect(world.relay.connectionCount).toBe(0);
    expect(world.clock.pending).toBe(0);
  });
});

it("documents every code in the README", async () => {
  const { readFile } = await import("node:fs/promises");
  const text = await readFile(new URL("../README.md", import.meta.url), "utf8");
  for (const [code, { meaning }] of Object.entries(CALL_ERRORS)) {
    expect(text).toContain(`\`${code}\``);
    expect(text).toContain(meaning);
  }
});

// eclipse-paho/paho.mqtt.python#365
describe("a listener that throws", () => {
  it.each([
    ["is reported to the console", undefined],
    ["is told to the log instead", vi.fn()],
  ])("%s, and hinders nothing", async (_, log) => {
    const shown = vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => shown.mockRestore());
    const world = new World();
    const agent = world.agent();
    const client = await world.connected(log === undefined ? {} : { log });
    const pump = client.agent("pump-7", SECRET);
    const thrown = new Error("no member");
    const seen: string[] = [];
    pump.on("event", () => {
      throw thrown;
    });
    pump.on("event", (name) => seen.push(name));
    await world.run(200);
    agent.emit("reading", {});
    await world.run(200);
    expect(seen).toEqual(["reading"]);
    expect(shown.mock.calls).toEqual(
      log === undefined ? [["blindrelay: a listener threw", thrown]] : [],
    );
    if (log !== undefined) {
      expect(log.mock.calls).toContainEqual([
        "error",
        "a listener threw",
        expect.anything(),
        thrown,
      ]);
    }
  });
});
