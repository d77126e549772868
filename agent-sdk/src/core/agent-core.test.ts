import { makeToken } from "@blindrelay/protocol";
import {
  deriveSignatureKey,
  extractPrk,
  jsonBytes,
  signPayload,
} from "@blindrelay/protocol/crypto";
import { DEFAULT_AGENT_LIMITS } from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { encodeAuthenticated } from "@blindrelay/protocol/wire";
import { describe, expect, it } from "vitest";
import { ManualTimer, seededRandom } from "../memory/index.ts";
import type { LinkEvents, LinkPort, Log } from "../ports.ts";
import { lenientJsonParse } from "../testing/lenient.ts";
import { AGENT_ID, AGENT_TOKEN, Client, RELAY_TOKEN, World } from "../testing/world.ts";

describe("login", () => {
  it("sends the relay token as an agent's, and is online with the answer", () => {
    const world = new World();
    world.core.start();
    world.settle();
    expect(world.link().messages).toEqual([
      {
        type: "auth",
        api_token: RELAY_TOKEN,
        client_type: "agent",
        agent_id: AGENT_ID,
        runtime: "test",
        firmware_version: "1.2.3",
      },
    ]);
    expect(world.core.link.state).toBe("authenticating");
    world.accept();
    expect(world.statuses.map(({ state }) => state)).toEqual([
      "connecting",
      "authenticating",
      "online",
    ]);
  });

  it("reuses the session token while it is valid", () => {
    const world = new World().online();
    world.link().end.close(1006, "cable");
    world.untilConnected();
    expect(world.link().messages[0]).toMatchObject({ type: "auth", session_token: "sess_1" });
    expect(world.link().messages[0]).not.toHaveProperty("api_token");
  });

  it("does not use a session token that is about to expire", () => {
    const world = new World();
    world.core.start();
    world.settle();
    world.accept(60);
    world.link().end.close(1006, "cable");
    world.untilConnected();
    expect(world.link().messages[0]).toMatchObject({ type: "auth", api_token: RELAY_TOKEN });
  });

  it.each(["INVALID_TOKEN", "SESSION_EXPIRED", "LIMIT_EXCEEDED", undefined])(
    "falls back to the relay token on the same link when the session token is refused with %s",
    (code) => {
      const world = new World().online();
      world.link().end.close(1006, "cable");
      world.untilConnected();
      world.fail(code);
      expect(world.link().messages[1]).toMatchObject({ type: "auth", api_token: RELAY_TOKEN });
      world.accept();
      expect(world.core.link.state).toBe("online");
      expect(world.links).toHaveLength(2);
    },
  );

  it("does not use a refused session token again, even if the relay token is refused too", () => {
    const world = new World().online();
    world.link().end.close(1006, "cable");
    world.untilConnected();
    world.fail("INVALID_TOKEN");
    world.fail("INVALID_TOKEN");
    expect(world.core.link.state).toBe("waiting");
    expect(world.untilConnected()).toBeGreaterThanOrEqual(120000);
    expect(world.link().messages).toHaveLength(1);
    expect(world.link().messages[0]).toHaveProperty("api_token");
  });

  it("waits at least 120 s after a refusal, doubling to an hour, and logs in when accepted", () => {
    const world = new World();
    world.core.start();
    world.settle();
    for (const least of [120, 240, 480, 960, 1920, 3600, 3600]) {
      world.fail("INVALID_TOKEN");
      expect(world.core.link.state).toBe("waiting");
      expect(world.core.link.status).toMatchObject({ code: "INVALID_TOKEN" });
      const waited = world.untilConnected() / 1000;
      expect(waited).toBeGreaterThanOrEqual(least);
      expect(waited).toBeLessThanOrEqual(least * 1.25);
    }
    world.accept();
    expect(world.core.link.state).toBe("online");
  });

  it("treats a failure without a code as a refusal", () => {
    const world = new World();
    world.core.start();
    world.settle();
    world.fail(undefined);
    expect(world.untilConnected()).toBeGreaterThanOrEqual(120000);
  });

  it("waits as long as a refusal requests, if that is longer", () => {
    const world = new World();
    world.core.start();
    world.settle();
    world.fail("INVALID_TOKEN", 600);
    expect(world.untilConnected()).toBeGreaterThanOrEqual(600000);
  });

  it.each([
    ["LOCKED_OUT", 37],
    ["SESSION_EXPIRED", 37],
    ["WRONG_TOKEN_KIND", 37],
    ["RATE_LIMITED", 37],
    ["RATE_LIMITED", 120],
  ])(
    "drops a session token that is refused with %s, and uses the relay token after retry_after %s",
    (code, retryAfter) => {
      const world = new World().online();
      world.link().end.close(1006, "cable");
      world.untilConnected();
      world.fail(code, retryAfter);
      expect(world.link().messages).toHaveLength(1);
      const waited = world.untilConnected() / 1000;
      expect(waited).toBeGreaterThanOrEqual(retryAfter);
      expect(waited).toBeLessThanOrEqual(retryAfter + (code === "RATE_LIMITED" ? 0 : 120));
      expect(world.link().messages).toEqual([expect.objectContaining({ api_token: RELAY_TOKEN })]);
      expect(world.link().messages[0]).not.toHaveProperty("session_token");
      world.accept();
      expect(world.core.link.state).toBe("online");
    },
  );

  it.each(["UNAVAILABLE", "TAKEOVER_LOOP"])(
    "keeps a session token that %s does not refuse",
    (code) => {
      const world = new World().online();
      world.link().end.close(1006, "cable");
      world.untilConnected();
      world.fail(code);
      world.untilConnected();
      expect(world.link().messages).toEqual([expect.objectContaining({ session_token: "sess_1" })]);
    },
  );

  it.each([
    [37, 37],
    [0, 600],
  ])("returns over 120 s after a lockout with retry_after %s", (retryAfter, leastS) => {
    const waits = Array.from({ length: 100 }, (_, seed) => {
      const world = new World({ seed });
      world.core.start();
      world.settle();
      world.fail("LOCKED_OUT", retryAfter);
      return world.untilConnected() / 1000 - leastS;
    }).sort((a, b) => a - b);
    expect(waits[0]).toBeGreaterThanOrEqual(0);
    expect(waits[9]).toBeLessThan(30);
    expect(waits[90]).toBeGreaterThan(90);
    expect(waits[99]).toBeLessThanOrEqual(120);
  });

  it.each([
    ["RATE_LIMITED", 37, 37],
    ["RATE_LIMITED", 0, 120],
    ["TAKEOVER_LOOP", 60, 60],
    ["TAKEOVER_LOOP", 1e308, 3600],
  ])("after %s with retry_after %s waits %s s", (code, retryAfter, seconds) => {
    const world = new World();
    world.core.start();
    world.settle();
    world.fail(code, retryAfter);
    expect(world.untilConnected()).toBe(seconds * 1000);
  });

  it("gives up permanently on a token of the wrong kind, and says what to do", () => {
    const world = new World();
    world.core.start();
    world.settle();
    world.fail("WRONG_TOKEN_KIND");
    expect(world.core.link.state).toBe("refused");
    expect(world.core.link.status.advice).toContain("agt_");
    expect(world.link().closedWith).toBe(4000);
    world.timer.advance(86400000);
    expect(world.links).toHaveLength(1);
    expect(world.timer.count()).toBe(0);
  });

  it("gives up on a relay that does not answer within 30 s", () => {
    const world = new World();
    world.core.start();
    world.settle();
    world.timer.advance(29999);
    expect(world.core.link.state).toBe("authenticating");
    world.timer.advance(1);
    expect(world.core.link.state).toBe("waiting");
    expect(world.link().closedWith).toBe(4000);
  });

  it("ignores packets and garbage before it is logged in", () => {
    const world = new World();
    world.core.start();
    world.settle();
    for (const text of ["{}", "[]", "nonsense"]) world.say(text);
    expect(world.core.link.state).toBe("authenticating");
    expect(world.link().messages).toHaveLength(1);
  });
});

describe("configuration", () => {
  const make = (core: object) => () => new World({ core });
  it("refuses a secret of the wrong kind and names both kinds, never the secret", () => {
    const account = makeToken("account", new Uint8Array(32));
    expect(make({ relayToken: account })).toThrow(/agent relay token.*account token/);
    expect(make({ relayToken: account })).not.toThrow(account);
    expect(make({ agentToken: RELAY_TOKEN })).toThrow(/end-to-end secret.*agent relay token/);
  });

  it("refuses other end-to-end secrets unless asked, and short ones always", () => {
    const foreign = "correct horse battery staple 1234567890";
    expect(make({ agentToken: foreign })).toThrow();
    expect(make({ agentToken: foreign, foreignAgentToken: true })).not.toThrow();
    expect(make({ agentToken: "short", foreignAgentToken: true })).toThrow("32");
  });

  it.each(["", "a b", "ä", "x".repeat(65), "a/b"])("refuses the agent_id %j", (agentId) => {
    expect(make({ agentId })).toThrow("agentId");
  });

  it.each(["", "1.4\n", "1.4.0-ä", "x".repeat(65), 1.4])(
    "refuses the firmwareVersion %j, which the relay would not accept",
    (firmwareVersion) => {
      expect(make({ firmwareVersion })).toThrow("firmwareVersion");
    },
  );
});

describe("a lost link", () => {
  it("is reopened with a jittered, doubling, bounded delay", () => {
    const world = new World();
    world.relayIsUp = false;
    world.core.start();
    const delays: number[] = [];
    world.core.link.onState(({ waitMs }) => {
      if (waitMs !== null) delays.push(waitMs);
    });
    world.timer.advance(1200000);
    let ceiling = 1000;
    for (const delay of delays) {
      expect(delay).toBeGreaterThan(ceiling / 2);
      expect(delay).toBeLessThanOrEqual(ceiling);
      ceiling = Math.min(ceiling * 2, 60000);
    }
    expect(delays.length).toBeGreaterThan(15);
    expect(new Set(delays).size).toBeGreaterThan(10);
  });

  it("is reopened although a listener to the state throws, which is logged", () => {
    const world = new World();
    world.core.link.onState(() => {
      throw new Error("no");
    });
    world.relayIsUp = false;
    world.core.start();
    world.timer.advance(10000);
    world.relayIsUp = true;
    world.untilConnected();
    world.accept();
    expect(world.core.link.status.state).toBe("online");
    expect(world.logs).toContain("error: a listener to the state failed");
  });

  it("resets the delays after a stable minute, and not before", () => {
    const world = new World();
    world.relayIsUp = false;
    world.core.start();
    world.timer.advance(100000);
    world.relayIsUp = true;
    world.untilConnected();
    world.accept();
    world.timer.advance(59000);
    world.link().end.close(1006, "");
    world.settle();
    expect(world.core.link.status.waitMs).toBeGreaterThan(20000);
    world.untilConnected();
    world.accept();
    world.timer.advance(60000);
    world.link().end.close(1006, "");
    world.settle();
    expect(world.core.link.status.waitMs).toBeLessThanOrEqual(1000);
  });

  it("spreads devices with identical randomness", () => {
    const delays = ["lamp-1", "lamp-2", "pump-3"].map((agentId) => {
      const world = new World({ core: { agentId } });
      world.relayIsUp = false;
      world.core.start();
      world.settle();
      return world.core.link.status.waitMs;
    });
    expect(new Set(delays).size).toBe(3);
  });

  it("is detected after 75 s of silence, and any message ends the silence", () => {
    const world = new World().online();
    world.timer.advance(60000);
    world.say({ type: "ping" });
    expect(world.link().last()).toEqual({ type: "pong" });
    world.timer.advance(74999);
    expect(world.core.link.state).toBe("online");
    world.timer.advance(1);
    expect(world.core.link.state).toBe("waiting");
    world.untilConnected();
    expect(world.links).toHaveLength(2);
  });

  it("is given up after 30 s if it never opens", () => {
    const timer = new ManualTimer();
    let connects = 0;
    const link: LinkPort = {
      connect: () => {
        connects++;
        return { send: () => {}, close: () => {} };
      },
    };
    const ports = { link, timer, random: seededRandom(1), suite: nodeSuite(), log: () => {} };
    const { core } = new World({ core: { ports } });
    core.start();
    timer.advance(29999);
    expect(core.link.state).toBe("connecting");
    timer.advance(1);
    expect(core.link.state).toBe("waiting");
    timer.advance(1000);
    expect(connects).toBe(2);
  });

  it("counts as lost if connect throws", () => {
    const link: LinkPort = {
      connect: () => {
        throw new Error("no network");
      },
    };
    const timer = new ManualTimer();
    const ports = { link, timer, random: seededRandom(1), suite: nodeSuite(), log: () => {} };
    const { core } = new World({ core: { ports } });
    core.start();
    expect(core.link.state).toBe("waiting");
  });

  it("warns of each reason for being offline once, and again when it changed or after a login", () => {
    const warned: string[] = [];
    let last: LinkEvents | null = null;
    const link: LinkPort = {
      connect: (_url, events) => {
        last = events;
        return { send: () => undefined, close: () => undefined };
      },
    };
    const timer = new ManualTimer();
    const log: Log = (level, message) => {
      if (level === "warn") warned.push(message);
    };
    const ports = { link, timer, random: seededRandom(1), suite: nodeSuite(), log };
    const { core } = new World({ core: { ports } });
    const fail = (why: string) => {
      (last as LinkEvents | null)?.closed(1006, why);
      expect(core.link.status.advice).toBe(why);
      timer.advance(core.link.status.waitMs ?? 0);
    };
    core.start();
    for (const why of ["no host", "no host", "no host", "refused", "refused", "no host"]) fail(why);
    const told = ["no host", "refused", "no host"];
    expect(warned).toEqual(told);
    (last as LinkEvents | null)?.opened();
    (last as LinkEvents | null)?.received(encodeAuthenticated("sess_1", 60, 100));
    expect(core.link.state).toBe("online");
    (last as LinkEvents | null)?.closed(1006, "cable");
    expect(core.link.status.advice).toContain("connection lost");
    timer.advance(core.link.status.waitMs ?? 0);
    fail("no host");
    expect(warned).toEqual([...told, "no host"]);
  });

  it("obeys RESTARTING exactly, once", () => {
    const world = new World().online();
    world.say({ type: "error", error: "", code: "RESTARTING", reconnect_in: 17.5 });
    expect(world.core.link.state).toBe("online");
    world.timer.advance(3000);
    world.link().end.close(1012, "restart");
    world.settle();
    expect(world.core.link.status).toMatchObject({ code: "RESTARTING", waitMs: 14500 });
    expect(world.untilConnected()).toBe(14500);
    world.accept();
    world.link().end.close(1006, "");
    world.settle();
    expect(world.core.link.status.waitMs).toBeLessThanOrEqual(1000);
  });

  it("doubles what RESTARTING asks for, to a minute, until it has logged in again", () => {
    const world = new World().online();
    const waits: number[] = [];
    const restart = (times: number) => {
      // A relay that repeats itself on one link counts once.
      for (let n = 0; n < times; n++) {
        world.say({ type: "error", error: "", code: "RESTARTING", reconnect_in: 5 });
      }
      world.link().end.close(1012, "restart");
      world.settle();
      waits.push(world.untilConnected());
    };
    for (const times of [1, 3, 1, 3, 1, 3]) restart(times);
    expect(waits).toEqual([5000, 10000, 20000, 40000, 60000, 60000]);
    world.accept();
    restart(1);
    expect(waits.at(-1)).toBe(5000);
  });

  it("waits a minute, then longer, when another device replaces it", () => {
    const world = new World().online();
    for (const least of [60, 120, 240]) {
      world.timer.advance(61000);
      world.say({ type: "error", error: "", code: "REPLACED" });
      expect(world.core.link.status.advice).toContain("another device");
      const waited = world.untilConnected() / 1000;
      expect(waited).toBeGreaterThanOrEqual(least);
      expect(waited).toBeLessThanOrEqual(least * 1.25);
      world.accept();
    }
  });

  it.each(["SESSION_EXPIRED", "LIMIT_EXCEEDED", "REVOKED"])(
    "logs in with the relay token after %s",
    (code) => {
      const world = new World().online();
      world.say({ type: "error", error: "", code });
      expect(world.untilConnected()).toBeLessThanOrEqual(1000);
      expect(world.link().messages[0]).toHaveProperty("api_token");
    },
  );

  it.each(["TOO_LARGE", "RATE_LIMITED", "SLOW_CONSUMER", "UNKNOWN_SESSION", "FUTURE", "__proto__"])(
    "stays open after the error %s",
    (code) => {
      const world = new World().online();
      world.say(`{"type":"error","error":"","code":"${code}","sid":"x"}`);
      expect(world.core.link.state).toBe("online");
      expect(world.core.link.counters.relayErrors).toBe(1);
    },
  );

  it("drops messages that it has no memory for, except pings, and stays open", () => {
    let hasRoom = true;
    const world = new World({ core: { hasRoom: () => hasRoom } }).online();
    hasRoom = false;
    const long = `{"type":"error","code":"RATE_LIMITED","error":"${"x".repeat(99)}"}`;
    world.say(long);
    world.say({ type: "ping" });
    expect(world.core.link.counters).toMatchObject({ dropped: 1, relayErrors: 0 });
    expect(world.link().messages.at(-1)).toEqual({ type: "pong" });
    hasRoom = true;
    world.say(long);
    expect(world.core.link.counters).toMatchObject({ dropped: 1, relayErrors: 1 });
    expect(world.core.link.state).toBe("online");
  });

  it("ignores a link that it gave up", () => {
    const timer = new ManualTimer();
    const links: LinkEvents[] = [];
    const sent: string[] = [];
    const link: LinkPort = {
      connect: (_url, events) => {
        links.push(events);
        return { send: (text) => sent.push(text), close: () => {} };
      },
    };
    const ports = { link, timer, random: seededRandom(1), suite: nodeSuite(), log: () => {} };
    const { core } = new World({ core: { ports } });
    core.start();
    timer.advance(40000);
    expect(links.length).toBeGreaterThan(1);
    const [old, current] = [links[0] as LinkEvents, links.at(-1) as LinkEvents];
    old.opened();
    expect(core.link.state).toBe("connecting");
    current.opened();
    old.received('{"type":"auth_response","status":"authenticated"}');
    expect(core.link.state).toBe("authenticating");
    current.received('{"type":"auth_response","status":"authenticated"}');
    const before = sent.length;
    old.received('{"type":"ping"}');
    old.received('{"type":"error","code":"REPLACED"}');
    old.closed(1006, "");
    expect(core.link.state).toBe("online");
    expect(sent).toHaveLength(before);
  });
});

describe("messages", () => {
  it.each([
    "nonsense",
    "[]",
    "null",
    "1",
    '"x"',
    '{"type":"relay"}',
    '{"type":"relay","payload":1}',
  ])("that are %s are counted and not answered", (text) => {
    const world = new World().online();
    world.say(text);
    expect(world.core.link.counters.unreadable).toBe(1);
    expect(world.link().messages).toHaveLength(1);
  });

  it("of unknown types are ignored", () => {
    const world = new World().online();
    world.say({ type: "future", payload: "x" });
    world.say({ type: "pong" });
    world.say({ type: "auth_response", status: "failed", code: "INVALID_TOKEN" });
    expect(world.link().messages).toHaveLength(1);
    expect(world.core.link.state).toBe("online");
  });

  it("are read by own properties only, even if JSON.parse lets __proto__ through", () => {
    const world = new World().online();
    lenientJsonParse();
    world.say('{"__proto__":{"type":"ping"}}');
    expect(world.link().messages).toHaveLength(1);
  });
});

describe("a call", () => {
  it("that comes bare is answered bare", () => {
    const world = new World().online();
    world.core.agent.handle("echo", (params) => params);
    const client = new Client(world, "bare").open();
    expect(client.call("echo", { text: "grüße 🙂" })).toMatchObject({
      result: { text: "grüße 🙂" },
    });
    expect(Object.keys(world.link().last())).toEqual(["v", "sid", "seq", "p"]);
  });

  it("that comes in an envelope is answered in one, with its request_id", () => {
    const world = new World().online();
    const client = new Client(world, "envelope").open();
    expect(world.link().messages[1]).toMatchObject({ type: "relay", request_id: "request-1" });
    expect(client.call("system.ping")).toMatchObject({ result: {} });
    expect(world.link().last()).toMatchObject({
      type: "relay",
      agent_id: AGENT_ID,
      request_id: "request-3",
    });
    expect(typeof world.link().last().payload).toBe("string");
  });

  it("is dropped if an envelope contains it as an object instead of a text", () => {
    const world = new World().online();
    const client = new Client(world, "envelope").open();
    const packet = client.session.seal(new TextEncoder().encode("{}")) as string;
    const sent = world.link().messages.length;
    world.say(client.wrap(packet, { payload: JSON.parse(packet) }));
    expect(world.core.dispatcher.counters.notRequests).toBe(0);
    expect(world.link().messages).toHaveLength(sent);
    world.say(client.wrap(packet));
    expect(world.core.dispatcher.counters.notRequests).toBe(1);
  });

  it("is refused if an envelope's packet writes its seq in another form", () => {
    const world = new World().online();
    const client = new Client(world, "envelope").open();
    const packet = client.session.seal(new TextEncoder().encode("{}")) as string;
    const wrapped = client.wrap(packet);
    expect(packet).toContain('"seq":2,');
    world.say(client.wrap(packet.replace('"seq":2,', '"seq":2.0,')));
    expect(world.core.sessions.counters).toMatchObject({ malformed: 1 });
    world.say(wrapped);
    expect(world.core.dispatcher.counters.notRequests).toBe(1);
  });

  it("copies a request_id with any characters", () => {
    const world = new World().online();
    const client = new Client(world, "envelope").open();
    const packet = client.session.seal(new TextEncoder().encode("[]")) as string;
    world.say(client.wrap(packet));
    const ping = client.session.seal(
      new TextEncoder().encode('{"jsonrpc":"2.0","id":5,"method":"system.ping"}'),
    ) as string;
    world.say(client.wrap(ping, { request_id: 'a"\\ü\n' }));
    expect(world.link().last().request_id).toBe('a"\\ü\n');
    expect(world.link().texts.at(-1)).toMatch(/^[\x20-\x7e]*$/);
  });

  it("is dropped if the envelope's signature does not verify, and accepted if it does", () => {
    const world = new World().online();
    const client = new Client(world, "envelope").open();
    const suite = nodeSuite();
    const key = deriveSignatureKey(suite, extractPrk(suite, AGENT_ID, AGENT_TOKEN));
    const packet = client.session.seal(
      new TextEncoder().encode('{"jsonrpc":"2.0","id":5,"method":"system.ping"}'),
    ) as string;
    const signature = signPayload(suite, key, packet);
    const before = world.link().messages.length;
    for (const wrong of [`A${signature.slice(1)}`, `${signature}=`, "", 1, {}]) {
      world.say(client.wrap(packet, { signature: wrong === signature ? "B" : wrong }));
    }
    expect(world.link().messages).toHaveLength(before);
    expect(world.core.counters.badSignatures + world.core.link.counters.unreadable).toBe(5);
    world.say(client.wrap(packet, { signature }));
    expect(world.link().messages).toHaveLength(before + 1);
  });

  it("runs once, however often its packet arrives", () => {
    const world = new World().online();
    let calls = 0;
    world.core.agent.handle("count", () => ++calls);
    const client = new Client(world).open();
    const packet = client.session.seal(
      new TextEncoder().encode('{"jsonrpc":"2.0","id":5,"method":"count"}'),
    ) as string;
    world.link().end.send(packet);
    world.link().end.send(packet);
    world.say(packet);
    expect(calls).toBe(1);
    expect(world.core.sessions.counters.replay).toBe(2);
  });

  it("survives the link: the session continues on the next one", () => {
    const world = new World().online();
    const client = new Client(world).open();
    world.link().end.close(1006, "");
    world.untilConnected();
    world.accept();
    expect(client.call("system.ping")).toMatchObject({ result: {} });
  });

  it("is not answered if its session has expired meanwhile", async () => {
    const world = new World().online();
    let finish: (value: unknown) => void = () => {};
    world.core.agent.handle(
      "slow",
      () =>
        new Promise((resolve) => {
          finish = resolve;
        }),
    );
    const client = new Client(world).open();
    client.call("slow");
    expect(world.core.dispatcher.inFlight()).toBe(1);
    world.timer.advance(60000);
    world.say({ type: "ping" });
    world.timer.advance(60000);
    expect(world.core.dispatcher.inFlight()).toBe(0);
    const sent = world.link().messages.length;
    finish(1);
    await Promise.resolve();
    world.settle();
    expect(world.link().messages).toHaveLength(sent);
  });

  it("is not answered if its session made room for another, and occupies no place", () => {
    const limits = { ...DEFAULT_AGENT_LIMITS, maxSessions: 1 };
    const world = new World({ core: { limits } }).online();
    world.core.agent.handle("slow", () => new Promise(() => {}));
    new Client(world).open().call("slow");
    expect(world.core.dispatcher.inFlight()).toBe(1);
    expect(new Client(world).open().call("system.ping")).toMatchObject({ result: {} });
    expect(world.core.dispatcher.inFlight()).toBe(0);
  });

  it("notifies an evicted session in its own form, before the other's first answer", () => {
    const limits = { ...DEFAULT_AGENT_LIMITS, maxSessions: 1 };
    const world = new World({ core: { limits } }).online();
    const first = new Client(world, "envelope").open();
    const before = world.link().messages.length + 1; // behind the answer to the opening
    new Client(world).open();
    expect(world.link().messages[before]).toMatchObject({ type: "relay", agent_id: AGENT_ID });
    expect(world.link().messages[before]).not.toHaveProperty("request_id");
    first.pump();
    expect(first.inbox.at(-1)).toEqual({ jsonrpc: "2.0", method: "system.close" });
  });

  it("that waits because others are forged is answered a moment later, in its own form", () => {
    const limits = { ...DEFAULT_AGENT_LIMITS, unheldPerSecond: 10, unheldBurst: 2 };
    const world = new World({ core: { limits } }).online();
    const bare = new Client(world).open();
    const wrapped = new Client(world, "envelope").open();
    const real = bare.session.seal(jsonBytes({ jsonrpc: "2.0", id: 1, method: "system.ping" }));
    for (let seq = 900; seq < 902; seq++) {
      world.say((real as string).replace(/"seq":\d+/, `"seq":${seq}`));
    }
    const before = world.link().messages.length;
    world.say(real as string);
    expect(wrapped.call("system.ping")).toBeUndefined();
    expect(world.link().messages).toHaveLength(before);
    world.timer.advance(200);
    const [first, second, ...others] = world.link().messages.slice(before);
    expect([first.sid, others]).toEqual([bare.session.sid(), []]);
    expect(second).toMatchObject({ type: "relay", request_id: "request-3" });
    wrapped.pump();
    expect(wrapped.inbox.at(-1)).toMatchObject({ result: {} });
  });

  it("is not answered if its client left, and the session is gone at once", () => {
    const world = new World().online();
    world.core.agent.handle("slow", () => new Promise(() => {}));
    const client = new Client(world).open();
    client.call("slow");
    client.sendJson({ jsonrpc: "2.0", method: "system.close" });
    expect(world.core.sessions.held()).toEqual([]);
    expect(world.core.dispatcher.inFlight()).toBe(0);
    expect(world.core.agent.emit("tick")).toBe(0);
  });

  it("that requests an answer to system.close gets an error, and its session stays", () => {
    const world = new World().online();
    const client = new Client(world).open();
    expect(client.call("system.close").error.message).toContain("notification");
    expect(client.call("system.ping").result).toEqual({});
  });

  it("is answered when its promise settles, even after other calls", async () => {
    const world = new World().online();
    const finish: ((value: unknown) => void)[] = [];
    world.core.agent.handle("slow", () => new Promise((resolve) => finish.push(resolve)));
    const client = new Client(world, "envelope").open();
    client.sendJson({ jsonrpc: "2.0", id: "a", method: "slow" });
    client.sendJson({ jsonrpc: "2.0", id: "b", method: "slow" });
    finish[1]?.("second");
    finish[0]?.("first");
    await Promise.resolve();
    await Promise.resolve();
    client.pump();
    expect(client.answerTo("a").result).toBe("first");
    expect(client.answerTo("b").result).toBe("second");
    // Each answer has the request_id of its own call.
    const ids = world
      .link()
      .messages.slice(-2)
      .map((message) => message.request_id);
    expect(ids).toEqual(["request-4", "request-3"]);
  });

  it("with the largest plaintext arrives in every wrapping, and so does its answer", () => {
    for (const wrapping of ["bare", "envelope"] as const) {
      const world = new World({ seed: 5 + wrapping.length }).online();
      world.core.agent.handle("echo", (params) => params);
      const client = new Client(world, wrapping).open();
      const overhead = '{"jsonrpc":"2.0","id":10,"method":"echo","params":[""]}'.length;
      const text = "x".repeat(47000 - overhead);
      expect(client.call("echo", [text])).toMatchObject({ result: [text] });
      expect(Math.max(...world.link().texts.map((sent) => sent.length))).toBeLessThan(65536);
    }
  });

  it("is answered with 65,536 bytes at most, whatever request_id is to be copied", () => {
    const world = new World().online();
    world.core.agent.handle("read", () => "x".repeat(46000));
    const client = new Client(world, "envelope").open();
    const answered = (requestId: string) => {
      const sent = world.link().texts.length;
      const call = jsonBytes({ jsonrpc: "2.0", id: 5, method: "read" });
      world.say(client.wrap(client.session.seal(call) as string, { request_id: requestId }));
      return world.link().texts.slice(sent);
    };
    const [text = ""] = answered("r");
    const most = "r".repeat(65536 - text.length + 1);
    expect(answered(most).map(({ length }) => length)).toEqual([65536]);
    expect(answered(`${most}r`)).toEqual([]);
    expect(world.core.counters.notSent).toBe(1);
    expect(answered("r")).toHaveLength(1);
  });

  it("whose handler throws is refused with the reason, which is logged with the method", () => {
    const world = new World().online();
    world.core.agent.handle("measure", () => {
      throw new Error("no sensor");
    });
    expect(new Client(world).open().call("measure").error.message).toBe("no sensor");
    expect(world.logs.at(-1)).toBe('warn: the handler of "measure" failed');
    expect(world.logFields.at(-1)).toEqual({ reason: "no sensor" });
  });

  it("is refused before it is parsed, or begins on a fresh stack, where a board wants that", async () => {
    const refuses = ({ length }: Uint8Array) => (length > 100 ? "too deep" : undefined);
    const world = new World({ core: { refuses, freshStack: true } }).online();
    let calls = 0;
    world.core.agent.handle("count", () => ++calls);
    const client = new Client(world).open();
    await Promise.resolve();
    client.pump();
    expect(client.call("count", ["x".repeat(100)]).error.message).toBe("too deep");
    client.call("count");
    expect(calls).toBe(0);
    await Promise.resolve();
    client.pump();
    expect([calls, client.inbox.at(-1).result]).toEqual([1, 1]);
  });

  it("is not answered if the queue is full", () => {
    let queued = 0;
    const world = new World({ queuedBytes: () => queued }).online();
    const client = new Client(world).open();
    queued = 2 ** 20 + 1;
    expect(client.call("system.ping")).toBe(undefined);
    expect(world.core.counters.notSent).toBe(1);
    queued = 0;
    expect(client.call("system.ping")).toMatchObject({ result: {} });
    // No seq was used for what was not sent.
    expect(client.gaps).toBe(0);
  });
});

describe("system.info", () => {
  it("contains what the contract lists", () => {
    const world = new World({ core: { name: "Lamp", freeMemory: () => 4096 } }).online();
    world.core.agent.handle("led.set", () => null);
    const client = new Client(world).open();
    world.timer.advance(12345);
    expect(client.call("system.info").result).toEqual({
      name: "Lamp",
      sdk_version: "9.9.9",
      runtime: "test",
      free_memory: 4096,
      uptime_s: 12,
      methods: ["system.ping", "system.info", "system.close", "led.set"],
      max_plaintext: 47000,
    });
  });

  it.each([
    [1000, 1000],
    [100000, 47000],
  ])(
    "of a device with room for calls of %i bytes says %i, and no more than is known",
    (given, most) => {
      const world = new World({ core: { maxPlaintext: given } }).online();
      expect(new Client(world).open().call("system.info").result).toMatchObject({
        name: AGENT_ID,
        max_plaintext: most,
        free_memory: null,
      });
    },
  );
});

describe("an event", () => {
  it("reaches every session held, in the form in which each was last addressed", () => {
    const world = new World().online();
    const bare = new Client(world, "bare").open();
    const enveloped = new Client(world, "envelope").open();
    expect(world.core.agent.emit("button", { pressed: true })).toBe(2);
    bare.pump();
    enveloped.pump();
    const event = { jsonrpc: "2.0", method: "button", params: { pressed: true } };
    expect(bare.inbox).toContainEqual(event);
    expect(enveloped.inbox).toContainEqual(event);
    const [first, second] = world.link().messages.slice(-2);
    expect(first).not.toHaveProperty("type");
    expect(second).toMatchObject({ type: "relay", agent_id: AGENT_ID });
    expect(second).not.toHaveProperty("request_id");
  });

  it("follows a session to the form of its last packet, and keeps none of one that has ended", () => {
    const world = new World().online();
    const gone = new Client(world).open();
    const moved = new Client(world, "envelope").open();
    gone.sendJson({ jsonrpc: "2.0", method: "system.close" });
    world.core.agent.emit("tick");
    world.settle();
    expect(world.link().last()).toMatchObject({ type: "relay" });
    const ping = jsonBytes({ jsonrpc: "2.0", id: 1, method: "system.ping" });
    world.say(moved.session.seal(ping) as string);
    world.core.agent.emit("tick");
    world.settle();
    expect(world.link().last()).not.toHaveProperty("type");
    expect(Reflect.get(world.core, "formSids")).toEqual([moved.session.sid()]);
  });

  it("may have no data, or an array", () => {
    const world = new World().online();
    const client = new Client(world).open();
    world.core.agent.emit("tick");
    world.core.agent.emit("tick", [1]);
    client.pump();
    expect(client.inbox).toEqual([
      { jsonrpc: "2.0", method: "tick" },
      { jsonrpc: "2.0", method: "tick", params: [1] },
    ]);
  });

  it("with other data, too much of it, or no name is an error of the program", () => {
    const agent = new World().core.agent;
    for (const data of [1, "text", null, true] as unknown as object[]) {
      expect(() => agent.emit("x", data)).toThrow("object or an array");
    }
    expect(() => agent.emit("x", { toJSON: () => undefined })).toThrow("JSON");
    expect(() => agent.emit("x", ["y".repeat(47000)])).toThrow("47000");
    for (const name of ["", 7 as unknown as string]) {
      expect(() => agent.emit(name)).toThrow("an event needs a name");
    }
  });

  it("may be as large as a call, and no larger", () => {
    const world = new World().online();
    const { agent } = world.core;
    const client = new Client(world).open();
    const room = 47000 - '{"jsonrpc":"2.0","method":"x","params":[""]}'.length;
    expect(agent.emit("x", ["y".repeat(room)])).toBe(1);
    expect(() => agent.emit("x", ["y".repeat(room + 1)])).toThrow(
      "the event has 47001 bytes, at most 47000 fit",
    );
    client.pump();
    expect(client.inbox.at(-1).params[0]).toHaveLength(room);
  });

  it("reaches nobody while there is no link or no session", () => {
    const world = new World();
    expect(world.core.agent.emit("tick")).toBe(0);
    world.online();
    expect(world.core.agent.emit("tick")).toBe(0);
    new Client(world).open();
    expect(world.core.agent.emit("tick")).toBe(1);
    world.link().end.close(1006, "");
    world.settle();
    expect(world.core.agent.emit("tick")).toBe(0);
  });
});

describe("events that a session missed", () => {
  it("are not told to the one after it, if it is over", () => {
    const world = new World().online();
    new Client(world).open();
    world.relayIsUp = false;
    world.link().end.close(1006, "");
    world.settle();
    expect([world.core.agent.emit("tick"), world.core.agent.emit("tick")]).toEqual([0, 0]);
    world.timer.advance(121000);
    world.relayIsUp = true;
    world.untilConnected();
    world.accept();
    const client = new Client(world).open();
    client.call("system.ping");
    world.core.agent.emit("tick");
    client.pump();
    expect(client.inbox.filter(({ method }) => method !== undefined)).toEqual([
      { jsonrpc: "2.0", method: "tick" },
    ]);
  });
});

describe("a session idle for 120 s", () => {
  it("gets nothing more, even if the timer that forgets it is late", () => {
    const world = new World().online();
    new Client(world).open();
    const onTime = world.timer.now.bind(world.timer);
    world.timer.now = () => onTime() + 120_000;
    expect(world.core.agent.emit("tick")).toBe(0);
  });
});

describe("a restarted agent", () => {
  it("answers the first instance's opening with another A, and accepts none of its packets", () => {
    const first = new World({ seed: 3 }).online();
    const client = new Client(first).open();
    const recorded = client.session.seal(
      new TextEncoder().encode('{"jsonrpc":"2.0","id":5,"method":"count"}'),
    ) as string;
    const second = new World({ seed: 3, bootCount: 3 }).online();
    let calls = 0;
    second.core.agent.handle("count", () => ++calls);
    second.say(recorded);
    expect(calls).toBe(0);
    const answer = second.link().last();
    expect(answer.seq).toBe(0);
    expect(answer.sid).not.toBe(client.session.sid());
    expect(answer.sid.split(".")[0]).toBe(client.session.first());
  });
});

describe("stopping", () => {
  it("closes the link, ends the timers, and cannot be undone", () => {
    const world = new World().online();
    let ticks = 0;
    world.core.agent.every(1000, () => ticks++);
    world.timer.advance(2500);
    world.core.stop();
    world.core.stop();
    world.settle();
    expect(world.link().closedWith).toBe(1000);
    expect(ticks).toBe(2);
    expect(world.timer.count()).toBe(0);
    expect(() => world.core.start()).toThrow("raised boot count");
  });

  it("ends the timers that the program starts when it hears of it", () => {
    const world = new World().online();
    const { agent } = world.core;
    let isLate = false;
    const late = (): void => {
      isLate = true;
    };
    agent.attach({ methods: [], receive: late, lost: () => agent.after(100, late) });
    world.core.stop();
    world.timer.advance(10_000);
    expect([isLate, world.timer.count()]).toEqual([false, 0]);
  });

  it("works in every state, even from a handler", () => {
    const connecting = new World();
    connecting.core.start();
    connecting.core.stop();
    const waiting = new World();
    waiting.relayIsUp = false;
    waiting.core.start();
    waiting.settle();
    waiting.core.stop();
    const handled = new World().online();
    handled.core.agent.handle("off", () => handled.core.stop());
    new Client(handled).open().call("off");
    for (const world of [connecting, waiting, handled, new World()]) {
      world.core.stop();
      expect(world.core.link.state).toBe("stopped");
      world.timer.advance(100000);
      expect(world.timer.count()).toBe(0);
    }
  });

  it("works from a listener to the state, which then opens no connection", () => {
    const world = new World();
    world.core.link.onState(({ state }) => state === "connecting" && world.core.stop());
    world.core.start();
    world.settle();
    expect(world.links).toHaveLength(0);
    expect(world.timer.count()).toBe(0);
  });

  it("is not implied by a second start, which throws", () => {
    const world = new World().online();
    expect(() => world.core.start()).toThrow();
    expect(world.core.link.state).toBe("online");
  });
});

describe("a part of the SDK", () => {
  const attached = () => {
    const world = new World().online();
    const received: unknown[] = [];
    const lost: unknown[] = [];
    const wiring = world.core.agent.attach({
      methods: ["stream.data", "stream.end"],
      receive: (...all) => received.push(all),
      lost: (...all) => lost.push(all),
    });
    const client = new Client(world).open();
    return { world, wiring, client, sid: client.session.sid() as string, received, lost };
  };

  it("gets the notifications that it named, with their session, and sends there", () => {
    const { world, wiring, client, sid, received } = attached();
    client.sendJson({ jsonrpc: "2.0", method: "stream.end", params: { stream: 1 } });
    client.sendJson({ jsonrpc: "2.0", method: "stream.other", params: { stream: 1 } });
    expect(received).toEqual([["stream.end", { stream: 1 }, sid]]);
    expect(wiring.send(sid, '{"jsonrpc":"2.0","method":"stream.credit"}')).toBe(true);
    client.pump();
    expect(client.inbox.at(-1)).toMatchObject({ method: "stream.credit" });
    expect([wiring.maxPlaintext, wiring.heardAt("none")]).toEqual([47000, null]);
    world.timer.advance(1000);
    expect(world.core.agent.now() - (wiring.heardAt(sid) as number)).toBe(1000);
  });

  it("is told of packets that were lost, and of sessions that are over, with the reason", () => {
    const { world, client, sid, lost } = attached();
    client.call("system.ping");
    expect(lost).toEqual([]);
    client.session.seal(jsonBytes({ lost: true }));
    client.call("system.ping");
    expect(lost.splice(0)).toEqual([[sid, "packets were lost"]]);
    client.sendJson({ jsonrpc: "2.0", method: "system.close" });
    expect(lost.splice(0)).toEqual([[sid, "the client left"]]);
    const idle = new Client(world).open().session.sid();
    for (let n = 0; n < 4; n++) {
      world.timer.advance(30000);
      world.say({ type: "ping" });
    }
    expect(lost.splice(0)).toEqual([[idle, "the session is over"]]);
    world.core.stop();
    expect(lost).toEqual([[null, "the agent stopped"]]);
  });
});

it("an agent has one part at most", () => {
  const { agent } = new World().core;
  const part = { methods: [], receive: () => undefined, lost: () => undefined };
  agent.attach(part);
  expect(() => agent.attach(part)).toThrow("has its part already");
});

describe("program timers", () => {
  it("fire in virtual time, can be cancelled, and may throw", () => {
    const world = new World();
    const seen: string[] = [];
    const agent = world.core.agent;
    const end = agent.every(10, () => {
      seen.push(`every ${agent.now()}`);
      if (agent.now() === 30) end();
    });
    agent.after(15, () => seen.push(`after ${agent.now()}`));
    const never = agent.after(20, () => seen.push("never"));
    never();
    never();
    agent.after(18, () => {
      throw new Error("broken");
    });
    world.timer.advance(100);
    expect(seen).toEqual(["every 10", "after 15", "every 20", "every 30"]);
    expect(world.logs).toEqual(["error: a timer of the device program failed"]);
    expect(world.timer.count()).toBe(0);
  });

  it("refuses a period that would never end", () => {
    const agent = new World().core.agent;
    expect(() => agent.every(0, () => {})).toThrow();
    expect(() => agent.after(Number.NaN, () => {})).toThrow();
  });
});
