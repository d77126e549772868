/**
 * Sessions under adverse conditions (section 2): restarts, lost packets, second answers, idleness,
 * renewal.
 */
import { SESSION_IDLE_MS } from "@blindrelay/protocol";
import { asciiBytes, jsonBytes } from "@blindrelay/protocol/crypto";
import { encodeRestarting } from "@blindrelay/protocol/wire";
import { describe, expect, it } from "vitest";
import { settle } from "../testing/streams.ts";
import { SECRET, testToken, World } from "../testing/world.ts";

const HOUR_MS = 3_600_000;

/** Every packet that reached the relay, and its form. */
const packetsOf = (world: World) =>
  world.relay.received
    .map((text) => JSON.parse(text))
    .filter(({ type }) => type === "relay" || type === undefined)
    .map((message) => ({
      bare: message.type === undefined,
      text: message.type === undefined ? JSON.stringify(message) : (message.payload as string),
    }));

const firstOf = (packet: { readonly text: string } | undefined): string =>
  JSON.parse(packet?.text ?? "{}").sid?.split(".")[0];

const openings = (world: World) =>
  new Set(packetsOf(world).map(({ text }) => JSON.parse(text).sid.split(".")[0])).size;

const talking = async (options = {}) => {
  const world = new World();
  // Session tokens that never expire: these tests are about sessions with agents.
  world.relay.sessionTtlS = 365 * 86_400;
  const agent = world.agent();
  agent.handlers.set("never", () => undefined);
  const client = await world.connected(options);
  const pump = client.agent("pump-7", SECRET);
  const hello = world.follow(pump.call("echo", ["hello"]));
  await world.run(200);
  expect(hello.result).toEqual(["hello"]);
  return { world, agent, client, pump };
};

it("an agent's count of events that it could not send is a gap; anything else there is not", async () => {
  const world = new World();
  const agent = world.agent();
  const pump = (await world.connected()).agent("pump-7", SECRET);
  const told: unknown[] = [];
  pump.on("event", (event) => told.push(event));
  pump.on("gap", (count, of) => told.push([count, of]));
  await world.run(1_000);
  for (const events of [3, 0, -1, 1.5, "7", null]) agent.emit("system.lost", { events });
  agent.emit("system.lost", null);
  await world.run(100);
  expect(told).toEqual([[3, "events"]]);
});

describe("what an agent says in a session", () => {
  const logging = async () => {
    const talk = await talking();
    const lines: unknown[] = [];
    Object.assign(talk.world.ports, { log: (...line: unknown[]) => lines.push(line) });
    return { ...talk, lines, sid: talk.agent.sessions.held()[0] as string };
  };

  it("is ignored if it answers what nobody asked, or asks something", async () => {
    const { world, agent, pump, sid } = await logging();
    const call = world.follow(pump.call("never"));
    await world.run(100);
    agent.say(sid, { id: 99, result: "unasked" });
    agent.say(sid, { id: 3, method: "never" });
    await world.run(100);
    expect(call.times).toBe(0);
    agent.say(sid, { id: 3, result: "asked" });
    agent.say(sid, { id: 3, result: "again" });
    await world.run(100);
    expect(call).toEqual({ times: 1, result: "asked" });
    expect(await settle(world, pump.call("echo", [1]), 100)).toEqual([1]);
  });

  it("is refused and logged if it was changed on its way", async () => {
    const { world, agent, pump, sid, lines } = await logging();
    const packet = agent.sessions.seal(sid, jsonBytes({ jsonrpc: "2.0", method: "level" }));
    const { p, ...fields } = JSON.parse(packet as string);
    const forged = { ...fields, p: (p[0] === "A" ? "B" : "A") + p.slice(1) };
    world.relay.fromAgent("pump-7", JSON.stringify(forged));
    await world.run(100);
    expect(lines).toEqual([["debug", "packet refused", { reason: "forged" }]]);
    expect(await settle(world, pump.call("echo", [1]), 100)).toEqual([1]);
  });

  it("is told as missing and logged if it has an event that JavaScript cannot hold", async () => {
    const { world, agent, sid, pump, lines } = await logging();
    const gaps: unknown[] = [];
    pump.on("gap", (count, of) => gaps.push([count, of]));
    pump.on("event", (event) => gaps.push(event));
    await world.run(1_000);
    const text = '{"jsonrpc":"2.0","method":"card","params":[9007199254740993]}';
    world.relay.fromAgent("pump-7", agent.sessions.seal(sid, asciiBytes(text)) as string);
    await world.run(100);
    expect(gaps).toEqual([[1, "events"]]);
    expect(lines).toEqual([
      ["warn", expect.stringMatching(/^an event was dropped: it has the number 9007199254740993,/)],
    ]);
  });

  it("frees the bytes of the calls that it answers", async () => {
    const { world, agent, pump } = await logging();
    const text = "x".repeat(40_000);
    for (let n = 0; n < 10; n++) await settle(world, pump.call("echo", [text]), 100);
    for (let n = 0; n < 3; n++) world.follow(pump.call("never"));
    await world.run(100);
    expect(agent.executed.filter((line) => line.startsWith("never"))).toHaveLength(3);
  });
});

describe("a session", () => {
  it("that was idle is kept alive from the moment when somebody listens", async () => {
    const { world, pump } = await talking();
    await world.run(30_000);
    const told: unknown[] = [];
    pump.on("event", () => {});
    pump.on("interrupted", (reason) => told.push(reason));
    await world.run(600_000);
    expect([told, openings(world)]).toEqual([[], 1]);
  });

  it("ends 15 s after the agent is said to be back and does not answer", async () => {
    const { world, agent, pump } = await talking();
    const told: unknown[] = [];
    pump.on("event", () => {});
    pump.on("interrupted", (reason) => told.push(reason));
    await world.run(20_000);
    Object.assign(agent, { receive: () => undefined });
    agent.goOnline();
    await world.run(14_000);
    expect(told).toEqual([]);
    await world.run(2_000);
    expect(told).toEqual(["the agent does not answer a ping"]);
  });

  it("leaves its place at the agent as soon as an idle one is followed by another", async () => {
    const { world, agent, client } = await talking();
    const pump = client.agent("pump-7", SECRET, { renewAfterMs: 60_000 });
    for (const n of [1, 2]) {
      expect(await settle(world, pump.call("echo", [n]), 1_000)).toEqual([n]);
      await world.run(n === 1 ? 60_000 : 0);
    }
    expect(agent.sessions.held()).toHaveLength(2);
  });
});

describe("an agent that restarted", () => {
  it("fails calls in flight with OUTCOME_UNKNOWN, repeats idempotent ones, and continues", async () => {
    const { world, agent, pump } = await talking();
    const once = world.follow(pump.call("never"));
    const twice = world.follow(pump.call("never", [], { idempotent: true }));
    await world.run(100);
    agent.restart();
    agent.handlers.set("never", ({ answer }) => answer("after all"));
    const found = world.follow(pump.call("echo", [1]));
    await world.run(100);
    expect(once.error).toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: false });
    expect(found.error?.code).toBe("OUTCOME_UNKNOWN");
    await world.run(600);
    expect(twice).toEqual({ times: 1, result: "after all" });
    const next = world.follow(pump.call("echo", [2]));
    await world.run(100);
    expect(next.result).toEqual([2]);
    agent.restart();
    agent.goOnline();
    await world.run(1_000);
    const last = world.follow(pump.call("echo", [3]));
    await world.run(1_000);
    expect(last.result).toEqual([3]);
    expect(agent.executed).toEqual([
      'echo:["hello"]',
      "never:undefined",
      "never:[]",
      "never:[]",
      "echo:[2]",
      "echo:[3]",
    ]);
  });

  it("frees the places of calls in flight", async () => {
    const { world, agent, pump } = await talking();
    for (let n = 0; n < 40; n++) world.follow(pump.call("never", [], { timeoutMs: 100_000 }));
    await world.run(100);
    expect(agent.executed).toHaveLength(1 + 32);
    agent.restart();
    agent.goOnline();
    await world.run(1_000);
    expect(agent.executed).toHaveLength(1 + 32 + 8);
    const call = world.follow(pump.call("echo", [1]));
    await world.run(100);
    expect(call.result).toEqual([1]);
  });

  it("costs an idle client nothing if presence reported it", async () => {
    const { world, agent, pump } = await talking();
    agent.goOffline();
    agent.restart();
    agent.goOnline();
    await world.run(100);
    const call = world.follow(pump.call("echo", [1]));
    await world.run(100);
    expect(call.result).toEqual([1]);
  });

  it("is detected by a ping when its presence returns, long before the deadline", async () => {
    const { world, agent, pump } = await talking();
    const call = world.follow(pump.call("never"));
    await world.run(100);
    agent.goOffline();
    agent.restart();
    agent.goOnline();
    await world.run(100);
    expect(call.error?.code).toBe("OUTCOME_UNKNOWN");
  });

  it("keeps its calls in flight if it merely lost its connection", async () => {
    const { world, agent, pump } = await talking();
    let answer: (result: unknown) => void = () => undefined;
    agent.handlers.set("slow", (incoming) => {
      answer = incoming.answer;
    });
    const call = world.follow(pump.call("slow"));
    await world.run(100);
    agent.goOffline();
    agent.goOnline();
    await world.run(100);
    answer("still here");
    await world.run(100);
    expect(call.result).toBe("still here");
  });
});

describe("a second answer", () => {
  it("abandons the session, and nothing from the old one is accepted", async () => {
    const { world, agent, pump } = await talking();
    const old = agent.sessions;
    const [sid] = old.held();
    const opening = packetsOf(world)[0]?.text as string;
    const call = world.follow(pump.call("never"));
    await world.run(50);
    agent.restart();
    agent.receive(opening);
    await world.run(50);
    expect(call.error?.code).toBe("OUTCOME_UNKNOWN");
    world.relay.fromAgent(
      "pump-7",
      old.seal(sid as string, new TextEncoder().encode('{"jsonrpc":"2.0","id":3,"result":1}')) ??
        "",
    );
    const next = world.follow(pump.call("echo", [2]));
    await world.run(700);
    expect(next.result).toEqual([2]);
    expect(openings(world)).toBe(2);
  });
});

describe("lost packets", () => {
  it("of an opening are sent again byte for byte", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    let lost = 0;
    world.relay.toAgent = () => (lost++ < 2 ? null : 5);
    const call = world.follow(client.agent("pump-7", SECRET).call("echo", [1]));
    await world.run(5_000);
    expect(call.result).toEqual([1]);
    const texts = packetsOf(world).map(({ text }) => text);
    expect(texts[1]).toBe(texts[0]);
    expect(texts[2]).toBe(texts[0]);
  });

  it("of the first pong lead to a fresh opening", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    let answers = 0;
    world.relay.toClient = () => (++answers === 2 ? null : 5);
    const call = world.follow(client.agent("pump-7", SECRET).call("echo", [1]));
    await world.run(8_000);
    expect(call.result).toEqual([1]);
    expect(openings(world)).toBe(2);
  });

  it("of an answer end at the call's deadline, and the next call succeeds", async () => {
    const { world, pump } = await talking();
    world.relay.toClient = () => null;
    const lost = world.follow(pump.call("echo", [1], { timeoutMs: 1_000 }));
    await world.run(999);
    world.relay.toClient = () => 5;
    await world.run(1);
    expect(lost.error?.code).toBe("TIMED_OUT");
    const next = world.follow(pump.call("echo", [2]));
    await world.run(100);
    expect(next.result).toEqual([2]);
  });

  it("of an agent are reported as gaps", async () => {
    const { world, agent, pump } = await talking();
    const gaps: number[] = [];
    const events: unknown[] = [];
    pump.on("gap", (packets) => gaps.push(packets));
    pump.on("event", (event, data) => events.push([event, data]));
    let n = 0;
    world.relay.toClient = () => (++n < 3 ? null : 5);
    for (const value of [1, 2, 3]) agent.emit("level", { value });
    await world.run(100);
    expect(gaps).toEqual([2]);
    expect(events).toEqual([["level", { value: 3 }]]);
  });

  // The effect that opens a session contained the gap, but was not checked for it.
  it("of an agent that sends before it answers the first ping are reported as a gap", async () => {
    const world = new World();
    const agent = world.agent();
    const pump = (await world.connected()).agent("pump-7", SECRET);
    const gaps: number[] = [];
    pump.on("gap", (packets) => gaps.push(packets));
    const say = agent.say.bind(agent);
    agent.say = (sid, message) => {
      if (agent.executed.length === 0 && agent.pings === 1) say(sid, { method: "hello" });
      say(sid, message);
    };
    // The opening's answer, then the event, which is lost, then the pong.
    let n = 0;
    world.relay.toClient = () => (++n === 2 ? null : 5);
    const call = world.follow(pump.call("echo", [1]));
    await world.run(500);
    expect(call.result).toEqual([1]);
    expect(gaps).toEqual([1]);
  });
});

describe("a lost link", () => {
  it("fails calls in flight, repeats idempotent ones, keeps an idle session", async () => {
    const { world, agent, pump } = await talking();
    world.relay.cutAll();
    await world.run(2_000);
    const kept = world.follow(pump.call("echo", [0]));
    await world.run(100);
    expect(kept.result).toEqual([0]);
    expect(openings(world)).toBe(1);
    // A ping asks first whether the agent still has it.
    expect(packetsOf(world).map(({ bare }) => bare)).toEqual([false, true, true, false, true]);

    const once = world.follow(pump.call("never"));
    const twice = world.follow(pump.call("never", [], { idempotent: true }));
    await world.run(100);
    world.relay.cutAll();
    await world.run(0);
    expect(once.error?.code).toBe("OUTCOME_UNKNOWN");
    agent.handlers.set("never", ({ answer }) => answer("again"));
    await world.run(5_000);
    expect(twice.result).toBe("again");
  });
});

it.each([false, true])(
  "a call that waits for a link runs, although the agent restarted meanwhile (listens: %s)",
  async (listens) => {
    const { world, agent, pump } = await talking();
    if (listens) pump.on("event", () => undefined);
    world.relay.cutAll();
    await world.run(0);
    agent.restart();
    const call = world.follow(pump.call("echo", [1]));
    await world.run(5_000);
    expect([call.result, agent.executed.length]).toEqual([[1], 2]);
  },
);

it.each(["lost", "left for another one"])(
  "a call after the link was %s runs, although the agent restarted since",
  async (how) => {
    const { world, agent, pump } = await talking();
    if (how === "lost") world.relay.cutAll();
    else world.relay.sayToAll(encodeRestarting("The relay restarts", 0));
    await world.run(12_000);
    agent.restart();
    const ran: unknown[] = [];
    agent.handlers.set("open", ({ answer }) => answer(ran.push("open")));
    const call = world.follow(pump.call("open"));
    await world.run(1_000);
    expect([call.result, ran.length, openings(world)]).toEqual([1, 1, 2]);
  },
);

it("a ping that goes before a call follows the link, should that change again", async () => {
  const { world, pump } = await talking();
  const move = () => world.relay.sayToAll(encodeRestarting("The relay restarts", 0));
  move();
  await world.run(12_000);
  const { toAgent } = world.relay;
  world.relay.toAgent = () => 8_000;
  const call = world.follow(pump.call("echo", [2]));
  await world.run(1_000);
  move();
  await world.run(5_000);
  world.relay.toAgent = toAgent;
  await world.run(8_500);
  expect(call.result).toEqual([2]);
});

describe("a link under another session token", () => {
  it("opens a new session, because the old link may still hold the sid", async () => {
    const { world, pump } = await talking();
    world.relay.forgetSessions();
    world.relay.loseClients();
    await world.run(3_000);
    expect(world.relay.connectionCount).toBe(2);
    const call = world.follow(pump.call("echo", [1]));
    await world.run(100);
    expect(call.result).toEqual([1]);
  });
});

describe("a relay error about a packet", () => {
  it("UNKNOWN_SESSION: the same bytes in an envelope", async () => {
    const { world, agent, pump } = await talking();
    world.relay.forgetBindings();
    const calls = [1, 2, 3].map((n) => world.follow(pump.call("echo", [n])));
    await world.run(200);
    expect(calls.map(({ result }) => result)).toEqual([[1], [2], [3]]);
    expect(agent.executed).toHaveLength(4);
    const texts = packetsOf(world).slice(3);
    expect(texts.map(({ bare }) => bare)).toEqual([true, true, true, false, false, false]);
    expect(texts.slice(3).map(({ text }) => text)).toEqual(
      texts.slice(0, 3).map(({ text }) => text),
    );
  });

  it("SID_IN_USE: a fresh sid, the sent call is unknown, waiting ones proceed", async () => {
    const { world, pump } = await talking();
    let refused = 0;
    world.relay.refuse = () => (refused++ === 0 ? "SID_IN_USE" : null);
    const call = world.follow(pump.call("echo", [1]));
    await world.run(100);
    expect(call.error?.code).toBe("OUTCOME_UNKNOWN");
    const next = world.follow(pump.call("echo", [2]));
    await world.run(100);
    expect(next.result).toEqual([2]);
    expect(openings(world)).toBe(2);
  });

  it.each(["RATE_LIMITED", "SLOW_CONSUMER", "INTERNAL"])(
    "%s: the same bytes a little later",
    async (code) => {
      const { world, agent, pump } = await talking();
      let refused = 0;
      world.relay.refuse = () => (refused++ < 4 ? code : null);
      const calls = [1, 2].map((n) => world.follow(pump.call("echo", [n])));
      await world.run(100);
      const later = world.follow(pump.call("echo", [3]));
      await world.run(2_000);
      expect([...calls, later].map(({ result }) => result)).toEqual([[1], [2], [3]]);
      expect(agent.executed).toHaveLength(4);
      expect(openings(world)).toBe(1);
      expect(new Set(packetsOf(world).map(({ text }) => text)).size).toBe(6);
    },
  );

  it("UNAVAILABLE repeatedly: less and less often, until the deadline", async () => {
    const { world, pump } = await talking();
    world.relay.refuse = () => "UNAVAILABLE";
    const call = world.follow(pump.call("echo", [1], { timeoutMs: 30_000 }));
    await world.run(29_000);
    expect(packetsOf(world).slice(3)).toHaveLength(8);
    await world.run(1_000);
    expect(call.error?.code).toBe("TIMED_OUT");
  });

  it("UNAVAILABLE until an agent has moved: its calls are executed, in order, each once", async () => {
    for (const movesMs of [0, 300, 3_000, 12_000]) {
      const { world, agent, pump } = await talking();
      world.relay.refuse = () => "UNAVAILABLE";
      const calls = [1, 2].map((n) => world.follow(pump.call("echo", [n])));
      await world.run(movesMs);
      calls.push(world.follow(pump.call("echo", [3])));
      world.relay.refuse = () => null;
      await world.run(10_100);
      expect([movesMs, calls.map(({ result }) => result)]).toEqual([movesMs, [[1], [2], [3]]]);
      expect(agent.executed.slice(1)).toEqual(["echo:[1]", "echo:[2]", "echo:[3]"]);
    }
  });

  it("UNAVAILABLE of an opening: the same opening a little later", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    let refused = 0;
    world.relay.refuse = () => (refused++ < 2 ? "UNAVAILABLE" : null);
    const call = world.follow(client.agent("pump-7", SECRET).call("echo", [1]));
    await world.run(700);
    expect(call.result).toEqual([1]);
    expect(openings(world)).toBe(1);
  });

  it("none for a lost packet: it is not repeated, because it may have ended the link", async () => {
    const { world, agent, pump } = await talking();
    world.relay.toAgent = () => null;
    const lost = world.follow(pump.call("echo", ["lost"]));
    await world.run(100);
    world.relay.toAgent = () => 5;
    agent.goOffline();
    agent.goOnline();
    await world.run(100);
    expect([lost.times, agent.executed.length]).toEqual([0, 1]);
  });

  it("UNAVAILABLE: no ping overtakes what waits to be sent again", async () => {
    const { world, agent, pump } = await talking();
    let refused = 0;
    world.relay.refuse = () => (refused++ < 5 ? "UNAVAILABLE" : null);
    const call = world.follow(pump.call("echo", ["late"]));
    await world.run(4_000);
    expect(call.times).toBe(0);
    agent.goOffline();
    agent.goOnline();
    await world.run(50);
    expect(call.result).toEqual(["late"]);
    const pings = agent.pings;
    // What waits behind it does not wait for the rest of the pause.
    const next = world.follow(pump.call("echo", ["next"]));
    await world.run(50);
    expect([next.result, agent.pings]).toEqual([["next"], pings]);
  });

  it("UNAVAILABLE: a relay that reports the agent again and again is not sent all each time", async () => {
    const { world, agent, pump } = await talking();
    world.relay.refuse = () => "UNAVAILABLE";
    for (let n = 0; n < 10; n++) world.follow(pump.call("never"));
    await world.run(150);
    const before = packetsOf(world).length;
    for (let told = 0; told < 100; told++) world.relay.setPresence(agent.id, true);
    await world.run(20);
    expect(packetsOf(world).length - before).toBe(10);
  });

  it("AGENT_OFFLINE with one in flight: that one fails", async () => {
    const { world, agent, pump } = await talking();
    world.relay.agents.delete(agent.id);
    const call = world.follow(pump.call("echo"));
    await world.run(100);
    expect(call.error).toMatchObject({ code: "AGENT_OFFLINE", retryable: false });
  });

  it("AGENT_OFFLINE with several in flight: none is reported as undelivered", async () => {
    const { world, agent, pump } = await talking();
    const first = world.follow(pump.call("never"));
    await world.run(100);
    agent.goOffline();
    const second = world.follow(pump.call("echo"));
    await world.run(100);
    expect([first, second].map(({ error }) => error?.code)).toEqual([
      "OUTCOME_UNKNOWN",
      "OUTCOME_UNKNOWN",
    ]);
  });

  it("any other: is logged, and ends nothing", async () => {
    const { world, agent, pump } = await talking();
    const lines: unknown[] = [];
    Object.assign(world.ports, { log: (...line: unknown[]) => lines.push(line) });
    const call = world.follow(pump.call("never"));
    await world.run(100);
    for (const sid of agent.sessions.held()) world.relay.errorToAll("BAD_MESSAGE", sid);
    await world.run(100);
    const about = { code: "BAD_MESSAGE", agentId: "pump-7" };
    expect(lines).toEqual([["warn", "the relay refused a packet", about]]);
    expect(call.times).toBe(0);
  });

  it("about another sid: ignored", async () => {
    const { world, agent, pump } = await talking();
    const [sid] = agent.sessions.held();
    pump.on("event", () => undefined);
    const call = world.follow(pump.call("never"));
    await world.run(100);
    for (const other of [`x${sid}`, (sid as string).slice(1), "", "."]) {
      world.relay.errorToAll("AGENT_OFFLINE", other);
    }
    await world.run(100);
    expect(call.times).toBe(0);
  });

  it("never make a call that is not idempotent run twice", async () => {
    for (const code of ["UNKNOWN_SESSION", "SID_IN_USE", "AGENT_OFFLINE", "RATE_LIMITED"]) {
      const { world, agent, pump } = await talking();
      // A lying relay: it delivers the packet, and then claims that it did not.
      world.relay.toAgent = (_id, text) => {
        const { sid } = JSON.parse(text);
        if (sid.includes(".")) world.relay.errorToAll(code, sid);
        return 50;
      };
      world.follow(pump.call("echo", ["once"]));
      await world.run(60_000);
      expect(agent.executed).toHaveLength(2);
    }
  });
});

describe("calls that wait for an offline agent", () => {
  const WAIT = { waitForAgent: true, timeoutMs: HOUR_MS };

  it("are sent when it is back, once each, while others fail at once", async () => {
    const { world, agent, pump } = await talking();
    agent.goOffline();
    await world.run(100);
    const waiting = [1, 2].map((n) => world.follow(pump.call("echo", [n], WAIT)));
    await world.run(100);
    const other = world.follow(pump.call("echo", [3]));
    await world.run(20);
    expect(other.error).toMatchObject({ code: "AGENT_OFFLINE", retryable: true });
    await world.run(1_800_000);
    expect(waiting.map(({ times }) => times)).toEqual([0, 0]);
    agent.restart();
    agent.goOnline();
    await world.run(500);
    expect(waiting).toEqual([
      { times: 1, result: [1] },
      { times: 1, result: [2] },
    ]);
    expect(agent.executed).toHaveLength(3);
  });

  it("are also retried at intervals, if nobody reports that it is back", async () => {
    const { world, agent, pump } = await talking();
    agent.goOffline();
    await world.run(100);
    const call = world.follow(pump.call("echo", [1], WAIT));
    await world.run(600_000);
    expect(openings(world)).toBeGreaterThan(10);
    expect(openings(world)).toBeLessThan(30);
    world.relay.agents.set(agent.id, agent);
    await world.run(61_000);
    expect(call.result).toEqual([1]);
  });

  it("go on waiting when another one is aborted", async () => {
    const { world, agent, pump } = await talking();
    agent.goOffline();
    await world.run(100);
    const leaving = new AbortController();
    const first = world.follow(pump.call("echo", [1], { ...WAIT, signal: leaving.signal }));
    const second = world.follow(pump.call("echo", [2], WAIT));
    await world.run(100);
    leaving.abort();
    await world.run(100);
    agent.goOnline();
    await world.run(100);
    expect([first.error?.code, second.result]).toEqual(["ABORTED", [2]]);
    expect(agent.executed.slice(1)).toEqual(["echo:[2]"]);
  });

  it("go on waiting if they were sent, are idempotent, and the relay could not deliver them", async () => {
    const { world, agent, pump } = await talking();
    world.relay.agents.delete(agent.id);
    const call = world.follow(pump.call("echo", [1], { ...WAIT, idempotent: true }));
    await world.run(1_000);
    expect(call.times).toBe(0);
    agent.goOnline();
    await world.run(100);
    expect(call.result).toEqual([1]);
  });

  it("are retried less and less often, and soon again once the agent was reached", async () => {
    const { world, agent, pump } = await talking();
    /** The waits between attempts for 100 s. */
    const waits = async (): Promise<number[]> => {
      agent.goOffline();
      await world.run(100);
      const at: number[] = [];
      world.relay.refuse = () => {
        at.push(world.clock.now());
        return null;
      };
      const call = world.follow(pump.call("echo", [1], WAIT));
      await world.run(100_000);
      agent.goOnline();
      await world.run(100);
      expect(call.result).toEqual([1]);
      return at.slice(1).map((time, n) => time - (at[n] as number));
    };
    for (let times = 0; times < 2; times++) {
      for (const [n, wait] of (await waits()).slice(0, 4).entries()) {
        // An attempt and its refusal take 10 ms.
        expect(wait).toBeGreaterThan(1_000 * 2 ** n);
        expect(wait).toBeLessThanOrEqual(2_000 * 2 ** n + 10);
      }
    }
  });

  it("end with AGENT_OFFLINE at their deadline", async () => {
    const { world, agent, pump } = await talking();
    agent.goOffline();
    await world.run(100);
    const call = world.follow(pump.call("echo", [1], { ...WAIT, timeoutMs: 90_000 }));
    await world.run(90_000);
    expect(call.error).toMatchObject({ code: "AGENT_OFFLINE", retryable: true });
  });

  it("fail at once if the relay knows no such agent", async () => {
    const { world } = await talking();
    const client = await world.connected();
    const call = world.follow(client.agent("nobody", SECRET).call("echo", [1], WAIT));
    await world.run(500);
    const code = "AGENT_NOT_FOUND";
    expect(call.error).toMatchObject({ code, relayCode: code, retryable: false });
    expect(call.error?.message).toMatch(/^nobody: ./);
  });

  it("are not repeated if the relay reports offline for a call that was sent", async () => {
    const { world, agent, pump } = await talking();
    world.relay.agents.delete(agent.id);
    const once = world.follow(pump.call("echo", [1], WAIT));
    await world.run(100);
    expect(once.error).toMatchObject({ code: "AGENT_OFFLINE", retryable: false });
    agent.goOnline();
    const twice = world.follow(pump.call("echo", [2], { ...WAIT, idempotent: true }));
    await world.run(500);
    expect(twice.result).toEqual([2]);
  });
});

describe("calls to one agent at once", () => {
  it("are sent up to 262,144 bytes of them", async () => {
    const { world, agent, pump } = await talking();
    const large = "x".repeat(40_000);
    const calls = Array.from({ length: 9 }, () => world.follow(pump.call("never", [large])));
    await world.run(1_000);
    expect(agent.executed).toHaveLength(1 + 5);
    expect(calls.map(({ times }) => times)).toEqual(Array(9).fill(0));
  });

  it("that were not sent before their deadline say why", async () => {
    const { world, pump } = await talking();
    for (let n = 0; n < 32; n++) world.follow(pump.call("never", [], { timeoutMs: 100_000 }));
    const late = world.follow(pump.call("echo", [], { timeoutMs: 1_000 }));
    await world.run(1_000);
    const { message, ...rest } = { ...late.error, message: late.error?.message };
    expect(rest).toMatchObject({ code: "TIMED_OUT", retryable: true });
    expect(message).toBe(
      "the call was not sent to pump-7 before its deadline: its turn did not come",
    );
  });

  it("that wait to be made again do not say that they were not sent", async () => {
    const { world, agent, pump } = await talking();
    const call = world.follow(pump.call("never", [], { timeoutMs: 1_000, idempotent: true }));
    await world.run(100);
    agent.dropSession();
    world.relay.toAgent = () => null;
    await world.run(1_000);
    expect(call.error).toMatchObject({ code: "TIMED_OUT", retryable: true });
    expect(call.error?.message).toBe("no verified answer to never from pump-7 before the deadline");
  });

  it("that wait to be made again while there is no link say why", async () => {
    const { world, pump } = await talking();
    const call = world.follow(pump.call("never", [], { timeoutMs: 20_000, idempotent: true }));
    await world.run(100);
    world.relay.reachable = false;
    world.relay.cutAll();
    await world.run(20_000);
    expect(call.error).toMatchObject({ code: "UNREACHABLE", cause: expect.any(Error) });
  });

  it("that wait to be made again as the account is refused may have run", async () => {
    const { world, pump } = await talking();
    const call = world.follow(pump.call("never", [], { timeoutMs: 60_000, idempotent: true }));
    await world.run(100);
    world.relay.reachable = false;
    world.relay.cutAll();
    await world.run(2_000);
    world.relay.reachable = true;
    world.relay.refuseAuth = () => ({
      error: "Invalid token",
      code: "INVALID_TOKEN",
      retryAfter: 0,
    });
    await world.run(30_000);
    expect(call.error).toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: true });
  });

  it("that were sent say at their deadline that no answer came, and which may be repeated", async () => {
    const { world, pump } = await talking();
    const once = world.follow(pump.call("never", [], { timeoutMs: 1_000 }));
    const safe = world.follow(pump.call("never", [], { timeoutMs: 900, idempotent: true }));
    await world.run(1_000);
    const text = "no verified answer to never from pump-7 before the deadline";
    expect(safe.error).toMatchObject({ code: "TIMED_OUT", retryable: true });
    expect(safe.error?.message).toBe(text);
    expect(once.error).toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: false });
    expect(once.error?.message).toBe(
      "outcome of never on pump-7 unknown: a call passed its deadline",
    );
  });

  it("that wait for an agent which stays away say so", async () => {
    const { world, agent, pump } = await talking();
    agent.goOffline();
    await world.run(100);
    const call = world.follow(pump.call("echo", [], { waitForAgent: true, timeoutMs: 60_000 }));
    await world.run(60_000);
    expect(call.error?.message).toBe("pump-7 was offline until the call's deadline");
  });
});

describe("an agent that the relay reports as gone", () => {
  it("is not sent a call in the session that it had, if nothing is in flight there", async () => {
    const { world, agent, pump } = await talking();
    agent.goOffline();
    await world.run(10);
    const call = world.follow(pump.call("echo", [1]));
    await world.run(10);
    expect(call.error).toMatchObject({ code: "AGENT_OFFLINE", retryable: true });
    expect(agent.executed).toHaveLength(1);
  });

  it("is asked once, two seconds later, if a call is in flight", async () => {
    const { world, agent, pump } = await talking();
    world.follow(pump.call("never"));
    await world.run(100);
    const before = packetsOf(world).length;
    agent.goOffline();
    await world.run(1_000);
    world.relay.setPresence("pump-7", false);
    await world.run(900);
    expect(packetsOf(world)).toHaveLength(before);
    await world.run(200);
    expect(packetsOf(world)).toHaveLength(before + 1);
    await world.run(1_000);
    expect(packetsOf(world)).toHaveLength(before + 1);
  });

  it("is not asked again if it is back within two seconds", async () => {
    const { world, agent, pump } = await talking();
    const call = world.follow(pump.call("never"));
    await world.run(100);
    const { pings } = agent;
    agent.goOffline();
    await world.run(1_000);
    agent.goOnline();
    await world.run(5_000);
    expect([agent.pings - pings, call.times]).toEqual([1, 0]);
  });

  it("is not asked anything for a mere subscriber", async () => {
    const { world, agent, pump } = await talking();
    pump.on("event", () => undefined);
    await world.run(100);
    const before = packetsOf(world).length;
    world.relay.setPresence(agent.id, false);
    await world.run(5_000);
    expect(packetsOf(world)).toHaveLength(before);
  });

  it("may still answer an opening", async () => {
    const world = new World();
    const agent = world.agent();
    const client = await world.connected();
    const call = world.follow(client.agent("pump-7", SECRET).call("echo", [1]));
    await world.run(1);
    world.relay.setPresence(agent.id, false);
    await world.run(500);
    expect([call.result, openings(world)]).toEqual([[1], 1]);
  });

  it("leaves no timer behind when the client closes meanwhile", async () => {
    const { world, agent, client, pump } = await talking();
    pump.on("event", () => undefined);
    world.follow(pump.call("never", [], { waitForAgent: true, idempotent: true }));
    await world.run(100);
    agent.dropSession();
    agent.goOffline();
    await world.run(100);
    client.close();
    await world.run(100);
    expect(world.clock.pending).toBe(1); // the relay's ping
  });
});

describe("an idle session", () => {
  it("expires after 90 s and is reopened by the next call", async () => {
    const { world, agent, pump } = await talking();
    await world.run(89_000);
    const kept = world.follow(pump.call("echo", [1]));
    await world.run(100);
    expect([kept.result, openings(world)]).toEqual([[1], 1]);
    await world.run(119_000);
    const fresh = world.follow(pump.call("echo", [2]));
    await world.run(100);
    expect([fresh.result, openings(world)]).toEqual([[2], 2]);
    expect(agent.pings).toBe(2);
  });

  it("also expires if its timer is late", async () => {
    const { world, pump } = await talking();
    await world.run(80_000);
    world.clock.jump(12_000);
    const call = world.follow(pump.call("echo", [1]));
    await world.run(100);
    expect(call.result).toEqual([1]);
    expect(openings(world)).toBe(2);
  });

  it("is kept by pings at 45 s for a subscriber, and expires if nobody listens", async () => {
    const { world, agent, pump } = await talking();
    const events: unknown[] = [];
    const off = pump.on("event", (event, data) => events.push([event, data]));
    await world.run(10 * 60_000);
    agent.emit("level", { value: 4 });
    await world.run(100);
    expect(events).toEqual([["level", { value: 4 }]]);
    expect(openings(world)).toBe(1);
    expect(agent.pings).toBe(1 + 13);
    off();
    await world.run(3 * 60_000);
    expect(agent.pings).toBe(1 + 13);
  });

  it("is kept for a call that takes long", async () => {
    const { world, agent, pump } = await talking();
    agent.handlers.set("slow", ({ answer }) => world.clock.set(400_000, () => answer("done")));
    const call = world.follow(pump.call("slow", [], { timeoutMs: 500_000 }));
    await world.run(410_000);
    expect(call.result).toBe("done");
  });

  it("is reopened for a subscriber if its pings stay unanswered", async () => {
    const { world, agent, pump } = await talking();
    const events: unknown[] = [];
    pump.on("event", (event) => events.push(event));
    agent.restart();
    world.relay.toClient = () => null;
    await world.run(60_000);
    world.relay.toClient = () => 5;
    await world.run(10_000);
    agent.emit("back", []);
    await world.run(100);
    expect(events).toEqual(["back"]);
  });
});

describe("the end of a session", () => {
  type Talk = Awaited<ReturnType<typeof talking>>;

  it.each<[string, object, (talk: Talk) => unknown]>([
    ["the link was lost", {}, ({ world }) => world.relay.cutAll()],
    [
      "the link is a new one",
      { isIdle: true },
      ({ world }) => {
        world.relay.forgetSessions();
        world.relay.loseClients();
      },
    ],
    [
      "the relay has bound its sid elsewhere",
      {},
      ({ world, pump }) => {
        world.relay.refuse = () => "SID_IN_USE";
        world.follow(pump.call("echo"));
      },
    ],
    [
      "the relay says AGENT_OFFLINE",
      {},
      ({ world, agent, pump }) => {
        world.relay.agents.delete(agent.id);
        world.follow(pump.call("echo"));
      },
    ],
    [
      "the agent reconnected",
      { isIdle: true },
      ({ world }) => world.relay.setPresence("pump-7", true),
    ],
    ["the agent left", { isIdle: true }, ({ world }) => world.relay.setPresence("pump-7", false)],
    [
      "a call passed its deadline",
      {},
      ({ world, pump }) => world.follow(pump.call("never", [], { timeoutMs: 1_000 })),
    ],
    [
      "idle for too long",
      { isIdle: true },
      ({ world, pump }) => {
        world.clock.jump(92_000); // its timer is late
        world.follow(pump.call("echo"));
      },
    ],
    ["the client ends", { isIdle: true }, ({ client }) => client.close()],
    [
      "the agent does not answer a ping",
      {},
      ({ world, agent }) => {
        world.relay.toClient = () => null;
        agent.restart();
      },
    ],
  ])(
    "because %s is logged, and told to a caller who waits",
    async (reason, { isIdle }: { isIdle?: boolean }, end) => {
      const talk = await talking();
      const { world, pump } = talk;
      const logged: unknown[] = [];
      const log = (level: string, text: string, more: object) => {
        if (text === "session over") logged.push([level, more]);
      };
      Object.assign(world.ports, { log });
      const call = isIdle ? null : world.follow(pump.call("never", [], { timeoutMs: 90_000 }));
      await world.run(100);
      end(talk);
      await world.run(70_000);
      expect(logged[0]).toEqual(["debug", { agentId: "pump-7", reason }]);
      if (call === null) return;
      expect(call.error?.code).toBe("OUTCOME_UNKNOWN");
      expect(call.error?.message).toBe(`outcome of never on pump-7 unknown: ${reason}`);
    },
  );

  it("comes before it is open if its only call is aborted", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    const lines: unknown[] = [];
    Object.assign(world.ports, { log: (...line: unknown[]) => lines.push(line) });
    const leaving = new AbortController();
    const pump = client.agent("pump-7", SECRET);
    const call = world.follow(pump.call("echo", [], { signal: leaving.signal }));
    await world.run(2);
    leaving.abort();
    await world.run(60_000);
    expect(call.error?.code).toBe("ABORTED");
    const reason = "nobody waits for it";
    expect(lines).toEqual([["debug", "session over", { agentId: "pump-7", reason }]]);
    expect(packetsOf(world)).toHaveLength(1);
  });
});

describe("a session that is no longer needed", () => {
  it("is left with a final packet when the client closes, and the agent forgets it", async () => {
    const { world, agent, client } = await talking();
    expect(agent.sessions.held()).toHaveLength(1);
    client.close();
    await world.run(100);
    expect(agent.sessions.held()).toEqual([]);
  });

  it("is left when it expires, and when a call passes its deadline", async () => {
    const { world, agent, pump } = await talking();
    await world.run(91_000);
    expect(agent.sessions.held()).toEqual([]);
    const call = world.follow(pump.call("never", [], { timeoutMs: 1_000 }));
    await world.run(1_100);
    expect(call.error?.code).toBe("TIMED_OUT");
    expect(agent.sessions.held()).toEqual([]);
  });

  it("is not left once the agent must have forgotten it", async () => {
    const { world, pump } = await talking();
    const before = packetsOf(world).length;
    const old = firstOf(packetsOf(world)[0]);
    world.clock.jump(SESSION_IDLE_MS);
    const call = world.follow(pump.call("echo", [1]));
    await world.run(5_000);
    expect(call.result).toEqual([1]);
    expect(packetsOf(world).slice(before).map(firstOf)).not.toContain(old);
  });
});

describe("a session that the agent closes", () => {
  it("fails calls in flight, and the next call opens a new session", async () => {
    const { world, agent, pump } = await talking();
    const once = world.follow(pump.call("never"));
    const twice = world.follow(pump.call("never", [], { idempotent: true }));
    await world.run(100);
    agent.dropSession();
    agent.handlers.set("never", ({ answer }) => answer("after all"));
    await world.run(100);
    expect(once.error).toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: false });
    expect(twice).toEqual({ times: 1, result: "after all" });
    expect(openings(world)).toBe(2);
  });

  it("is reopened at once for a subscriber, who is told that events may be missing", async () => {
    const { world, agent, pump } = await talking();
    const events: unknown[] = [];
    const interruptions: string[] = [];
    const reasons: string[] = [];
    pump.on("interrupted", (reason) => interruptions.push(reason));
    pump.on("reopened", (reason) => reasons.push(reason));
    pump.on("event", (event) => events.push(event));
    await world.run(60_000);
    expect([interruptions, reasons]).toEqual([[], []]);
    agent.dropSession();
    await world.run(100);
    expect(reasons).toEqual([expect.stringContaining("make room")]);
    expect(interruptions).toEqual(reasons);
    agent.emit("level", []);
    await world.run(100);
    expect(events).toEqual(["level"]);
    agent.restart();
    agent.goOnline();
    await world.run(1_000);
    expect(reasons.at(1)).toContain("restarted");
  });

  it("gives a subscriber no events before it is open, of which some might be missing unsaid", async () => {
    const world = new World();
    const agent = world.agent();
    agent.goOnline();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const events: unknown[] = [];
    pump.on("event", (_, data) => events.push(data));
    // The agent has answered, and its answer to the first ping is lost.
    world.relay.toClient = (_, text) => (JSON.parse(text).seq === 1 ? null : 1);
    await world.run(1_000);
    agent.emit("level", 1);
    await world.run(1_000);
    expect(events).toEqual([]);
    world.relay.toClient = () => 1;
    await world.run(20_000);
    agent.emit("level", 2);
    await world.run(1_000);
    expect(events).toEqual([2]);
  });

  it("notifies a subscriber at once, although the agent currently has no room for it", async () => {
    const { world, agent, pump } = await talking();
    const told: string[] = [];
    pump.on("interrupted", () => told.push("interrupted"));
    pump.on("reopened", () => told.push("reopened"));
    pump.on("event", () => undefined);
    await world.run(60_000);
    agent.dropSession();
    agent.goOffline();
    await world.run(100);
    expect(told).toEqual(["interrupted"]);
    await world.run(60_000);
    agent.goOnline();
    await world.run(60_000);
    expect(told).toEqual(["interrupted", "reopened"]);
  });

  it("is reopened after a few seconds if that repeats, not in a loop", async () => {
    const { world, agent, pump } = await talking();
    const reasons: string[] = [];
    pump.on("reopened", (reason) => reasons.push(reason));
    pump.on("event", () => undefined);
    await world.run(60_000);
    for (let second = 0; second < 60; second++) {
      agent.dropSession();
      await world.run(1_000);
    }
    expect(reasons.length).toBeGreaterThanOrEqual(10);
    expect(reasons.length).toBeLessThanOrEqual(30);
    await world.run(5_000);
    expect(agent.sessions.held()).toHaveLength(1);
  });
});

describe("a subscriber", () => {
  it("is told of no interruption before the first session is open", async () => {
    const world = new World();
    const agent = world.agent();
    agent.goOffline();
    const pump = (await world.connected()).agent("pump-7", SECRET);
    const told: string[] = [];
    pump.on("interrupted", () => told.push("interrupted"));
    pump.on("reopened", () => told.push("reopened"));
    pump.on("event", (event) => told.push(event));
    await world.run(60_000);
    agent.goOnline();
    await world.run(100);
    agent.emit("level", []);
    await world.run(100);
    expect(told).toEqual(["level"]);
  });

  it("who leaves before a session is open ends its opening", async () => {
    const world = new World();
    world.agent();
    const pump = (await world.connected()).agent("pump-7", SECRET);
    world.relay.toAgent = () => null;
    const off = pump.on("event", () => undefined);
    await world.run(100);
    expect(packetsOf(world)).toHaveLength(1);
    off();
    await world.run(60_000);
    expect(packetsOf(world)).toHaveLength(1);
  });

  it("who leaves while the next session opens leaves the one before, too", async () => {
    const { world, agent, client } = await talking();
    const pump = client.agent("pump-7", SECRET, { renewAfterMs: 60_000 });
    const off = pump.on("event", () => undefined);
    await world.run(100);
    world.relay.toAgent = (_id, text) => (JSON.parse(text).sid.includes(".") ? 5 : null);
    await world.run(100_000);
    expect(agent.sessions.held().length).toBeGreaterThan(0);
    off();
    await world.run(100);
    expect(agent.sessions.held()).toEqual([]);
  });

  it("who left during an interruption is told nothing of it when they come back", async () => {
    const { world, agent, pump } = await talking();
    const told: string[] = [];
    pump.on("interrupted", () => told.push("interrupted"));
    pump.on("reopened", () => told.push("reopened"));
    const off = pump.on("event", () => undefined);
    await world.run(60_000);
    agent.dropSession();
    agent.goOffline();
    await world.run(100);
    expect(told).toEqual(["interrupted"]);
    off();
    agent.goOnline();
    await world.run(60_000);
    pump.on("event", (event) => told.push(event));
    await world.run(1_000);
    agent.emit("level", []);
    await world.run(100);
    expect(told).toEqual(["interrupted", "level"]);
  });

  it("needs no call to be connected, and reconnects by itself", async () => {
    const world = new World();
    const agent = world.agent();
    agent.goOffline();
    const client = await world.connected();
    const events: unknown[] = [];
    client.agent("pump-7", SECRET).on("event", (event) => events.push(event));
    await world.run(10 * 60_000);
    const tries = packetsOf(world).length;
    expect(tries).toBeLessThan(25);
    agent.goOnline();
    await world.run(100);
    agent.emit("one", []);
    await world.run(100);
    agent.restart();
    agent.goOnline();
    await world.run(1_000);
    agent.emit("two", []);
    await world.run(100);
    world.relay.cutAll();
    await world.run(5_000);
    agent.goOnline();
    await world.run(1_000);
    agent.emit("three", []);
    await world.run(100);
    expect(events).toEqual(["one", "two", "three"]);
  });

  it("hears what happens from a lost link's return on, and is told what came before", async () => {
    const { world, agent, pump } = await talking();
    const told: unknown[] = [];
    pump.on("event", (event) => told.push(event));
    pump.on("gap", (count, of) => told.push([count, of]));
    pump.on("interrupted", () => told.push("interrupted"));
    await world.run(100);
    world.relay.cutAll();
    agent.emit("meanwhile", []);
    await world.run(3_000);
    agent.emit("after", []);
    await world.run(100);
    expect(told).toEqual([[1, "packets"], "after"]);
    expect(openings(world)).toBe(1);
  });

  it("whose ping was lost with the link gets a new session on the next one", async () => {
    const { world, agent, pump } = await talking();
    const told: unknown[] = [];
    pump.on("event", (event) => told.push(event));
    pump.on("interrupted", (reason) => told.push(reason));
    pump.on("reopened", () => told.push("reopened"));
    world.relay.toAgent = () => null;
    await world.run(46_000);
    world.relay.cutAll();
    world.relay.toAgent = () => 5;
    await world.run(3_000);
    agent.emit("after", []);
    await world.run(100);
    expect(told).toEqual(["the link was lost", "reopened", "after"]);
  });

  it("may throw without harm", async () => {
    const { world, agent, pump } = await talking();
    const events: unknown[] = [];
    pump.on("event", () => {
      throw new Error("mine");
    });
    pump.on("event", (event) => events.push(event));
    await world.run(100);
    agent.emit("level", []);
    await world.run(100);
    expect(events).toEqual(["level"]);
  });
});

describe("renewal", () => {
  it("after 24 h loses neither events nor calls in flight", async () => {
    const { world, agent, pump } = await talking();
    const events: unknown[] = [];
    pump.on("event", (event) => events.push(event));
    await world.run(24 * HOUR_MS - 60_000);
    agent.handlers.set("slow", ({ answer }) => world.clock.set(100_000, () => answer("done")));
    const slow = world.follow(pump.call("slow", [], { timeoutMs: 200_000 }));
    await world.run(59_000);
    expect(openings(world)).toBe(1);
    await world.run(2_000);
    const next = world.follow(pump.call("echo", [1]));
    await world.run(100);
    expect(next.result).toEqual([1]);
    expect(openings(world)).toBe(2);
    await world.run(60_000);
    expect(slow.result).toBe("done");
    agent.emit("level", []);
    await world.run(100);
    expect(events).toEqual(["level"]);
  });
});

describe("many agents", () => {
  it("continue if the relay holds fewer bindings than assumed", async () => {
    const world = new World();
    world.relay.maxBindings = 3;
    const ids = ["a", "b", "c", "d", "e"];
    for (const id of ids) world.agent(id);
    const client = await world.connected();
    for (let n = 0; n < 4; n++) {
      const calls = ids.map((id) => world.follow(client.agent(id, SECRET).call("echo", [n])));
      await world.run(5_000);
      expect(calls.map(({ result }) => result)).toEqual(ids.map(() => [n]));
    }
  });

  it("are independent, and one agent may be called with two secrets", async () => {
    const world = new World();
    world.agent("a");
    const b = world.agent("b", testToken("e2e", 5));
    const client = await world.connected();
    const events: string[] = [];
    client.agent("a", SECRET).on("event", (event) => events.push(`a ${event}`));
    client.agent("b", testToken("e2e", 5)).on("event", (event) => events.push(`b ${event}`));
    const wrong = world.follow(client.agent("b", SECRET).call("echo", [], { timeoutMs: 3_000 }));
    await world.run(3_000);
    b.emit("level", []);
    await world.run(100);
    expect(events).toEqual(["b level"]);
    expect(wrong.error?.code).toBe("TIMED_OUT");
    expect(client.agent("a", SECRET)).toBe(client.agent("a", SECRET));
  });
});
