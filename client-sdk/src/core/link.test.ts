/** The link of section 3: credentials, refusals, reconnects, and silence. */
import { encodeRestarting } from "@blindrelay/protocol/wire";
import { describe, expect, it } from "vitest";
import { Client } from "../client.ts";
import type { LinkEvents, LinkPort } from "../ports.ts";
import type { MemoryRelay } from "../testing/relay.ts";
import { ACCOUNT_TOKEN, SECRET, testToken, World } from "../testing/world.ts";
import type { LinkReport, Presence } from "./client-core.ts";
import { RelayLink } from "./link.ts";

const HOUR_MS = 3_600_000;
const DAY_S = 86_400;

const authsOf = (world: World) =>
  world.relay.received.map((text) => JSON.parse(text)).filter(({ type }) => type === "auth");

const lockedOut = { code: "LOCKED_OUT", error: "Locked out", retryAfter: 600 };

describe("credentials", () => {
  it("are first the account token, and the session token for reconnects", async () => {
    const world = new World();
    await world.connected();
    world.relay.cutAll();
    await world.run(5_000);
    expect(authsOf(world)).toEqual([
      { type: "auth", api_token: ACCOUNT_TOKEN, client_type: "client" },
      { type: "auth", session_token: testToken("session", 10), client_type: "client" },
    ]);
    expect(world.relay.connectionCount).toBe(1);
  });

  it("fall back to the account token on the same connection when the session token is refused", async () => {
    const world = new World();
    await world.connected();
    world.relay.forgetSessions();
    world.relay.cutAll();
    await world.run(5_000);
    expect(authsOf(world).map((auth) => Object.keys(auth)[1])).toEqual([
      "api_token",
      "session_token",
      "api_token",
    ]);
    expect(world.relay.connectionCount).toBe(1);
  });

  it("of one session only are refused permanently when it ends", async () => {
    const world = new World();
    const sessionToken = testToken("session", 99);
    const client = world.client({ accountToken: undefined, sessionToken });
    const started = world.follow(client.start());
    await world.run(HOUR_MS);
    expect(started.error).toMatchObject({
      code: "REFUSED",
      retryable: false,
      relayCode: "SESSION_EXPIRED",
    });
    expect(authsOf(world)).toHaveLength(1);
  });

  it("that end permanently leave calls in flight with unknown outcome; idempotent ones may be repeated", async () => {
    const world = new World();
    world.agent().handlers.set("never", () => undefined);
    await world.connected();
    const client = world.client({
      accountToken: undefined,
      sessionToken: testToken("session", 10),
    });
    world.follow(client.start());
    const pump = client.agent("pump-7", SECRET);
    const plain = world.follow(pump.call("never"));
    const again = world.follow(pump.call("never", [], { idempotent: true }));
    await world.run(500);
    world.relay.sayToAll('{"type":"error","code":"REVOKED","error":"rotated"}');
    await world.run(100);
    expect(plain.error).toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: false });
    expect(again.error).toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: true });
  });

  it("that are wrong are not tried again", async () => {
    const world = new World();
    const client = await world.connected();
    const reports: LinkReport[] = [];
    client.on("link", (report) => reports.push(report));
    world.relay.accountTokens = [];
    world.relay.forgetSessions();
    world.relay.cutAll();
    const call = world.follow(client.agent("pump-7", SECRET).call("echo"));
    await world.run(24 * HOUR_MS);
    expect(reports.map(({ state }) => state)).toEqual(["offline", "refused"]);
    expect(call.error).toMatchObject({ code: "REFUSED", retryable: false });
    const later = world.follow(client.agent("pump-7", SECRET).call("echo"));
    await world.run(1);
    expect(later.error?.code).toBe("REFUSED");
    expect(authsOf(world)).toHaveLength(3);
    expect(world.clock.pending).toBe(0);
  });

  it("wait for the end of a lockout, and at least 120 s", async () => {
    for (const [retryAfterS, leastS] of [
      [600, 600],
      [3, 120],
    ] as const) {
      const world = new World();
      await world.connected();
      world.relay.refuseAuth = () => ({ ...lockedOut, retryAfter: retryAfterS });
      world.relay.cutAll();
      await world.run(10_000);
      expect(authsOf(world)).toHaveLength(2);
      world.relay.refuseAuth = () => null;
      await world.run((leastS - 10) * 1000);
      expect(authsOf(world)).toHaveLength(2);
      await world.run(leastS * 500);
      expect(authsOf(world)).toHaveLength(3);
      expect(world.relay.connectionCount).toBe(1);
    }
  });

  it("say how long they really wait, whatever the relay asks for", async () => {
    const world = new World();
    const client = await world.connected();
    let said = "";
    client.on("link", (report) => {
      if (report.state !== "online") said = report.reason.message;
    });
    world.relay.refuseAuth = () => ({ ...lockedOut, retryAfter: 1e300 });
    world.relay.cutAll();
    await world.run(10_000);
    expect(said).toContain("(locked out for 3600 s)");
  });

  it.each([
    ["LOCKED_OUT", 120],
    ["SESSION_EXPIRED", 120],
    ["RATE_LIMITED", 90],
  ])(
    "are the account token after %s with retry_after 90, once at least %s s have passed",
    async (code, leastS) => {
      const world = new World();
      await world.connected();
      world.relay.refuseAuth = () => ({ code, error: "Invalid token", retryAfter: 90 });
      world.relay.cutAll();
      await world.run(10_000);
      world.relay.refuseAuth = () => null;
      await world.run((leastS - 10) * 1000);
      expect(authsOf(world)).toHaveLength(2);
      await world.run(leastS * 250 + 10_000);
      expect(authsOf(world).map((auth) => Object.keys(auth)[1])).toEqual([
        "api_token",
        "session_token",
        "api_token",
      ]);
      expect(world.relay.connectionCount).toBe(1);
    },
  );

  it.each(["UNAVAILABLE", "QUOTA_EXCEEDED"])(
    "remain the session token after %s, which does not refuse it",
    async (code) => {
      const world = new World();
      await world.connected();
      world.relay.refuseAuth = () => ({ code, error: "not now", retryAfter: 5 });
      world.relay.cutAll();
      await world.run(3_000);
      world.relay.refuseAuth = () => null;
      await world.run(60_000);
      const tokens = authsOf(world).map((auth) => Object.keys(auth)[1]);
      expect(new Set(tokens.slice(1))).toEqual(new Set(["session_token"]));
      expect(world.relay.connectionCount).toBe(1);
    },
  );

  it.each([
    ["RATE_LIMITED", 2, 12],
    ["QUOTA_EXCEEDED", 2, 12],
    ["LOCKED_OUT", 0, 0],
  ])("are tried less and less often after %s without retry_after", async (code, least, most) => {
    const world = new World();
    await world.connected();
    world.relay.refuseAuth = () => ({ code, error: "not now", retryAfter: 0 });
    world.relay.cutAll();
    await world.run(3_000); // with the session token, and with the account token
    const before = authsOf(world).length;
    await world.run(115_000);
    expect(authsOf(world).length - before).toBeGreaterThanOrEqual(least);
    expect(authsOf(world).length - before).toBeLessThanOrEqual(most);
    world.relay.refuseAuth = () => null;
    await world.run(60_000);
    expect(world.relay.connectionCount).toBe(1);
  });

  it("are tried again when the session of a fresh login has ended before it began", async () => {
    const world = new World();
    const client = await world.connected();
    const reports: LinkReport[] = [];
    client.on("link", (report) => reports.push(report));
    const over = { code: "SESSION_EXPIRED", error: "Session token expired", retryAfter: 0 };
    world.relay.refuseAuth = () => over;
    world.relay.cutAll();
    await world.run(300_000);
    const tokens = authsOf(world).map((auth) => Object.keys(auth)[1]);
    expect(tokens.slice(0, 4)).toEqual(["api_token", "session_token", "api_token", "api_token"]);
    // Less and less often.
    expect(tokens.length).toBeLessThan(15);
    world.relay.refuseAuth = () => null;
    await world.run(61_000);
    expect(world.relay.connectionCount).toBe(1);
    expect(new Set(reports.map(({ state }) => state))).toEqual(new Set(["offline", "online"]));
  });

  it("wait at most about an hour, whatever the relay requests", async () => {
    const world = new World();
    await world.connected();
    world.relay.refuseAuth = () => ({ ...lockedOut, retryAfter: 1e9 });
    world.relay.cutAll();
    await world.run(HOUR_MS);
    expect(authsOf(world)).toHaveLength(2);
    world.relay.refuseAuth = () => null;
    await world.run(HOUR_MS / 2);
    expect(world.relay.connectionCount).toBe(1);
    world.relay.restart(1e9);
    await world.run(HOUR_MS - 10_000);
    expect(world.relay.connectionCount).toBe(0);
    await world.run(20_000);
    expect(world.relay.connectionCount).toBe(1);
  });

  it.each([
    ["a quiet moment", 500_000],
    ["others waiting for it", 19_000],
  ])("are renewed before the session token expires, in %s", async (_how, leftMs) => {
    const world = new World();
    const agent = world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await world.run(24 * HOUR_MS - 605_000);
    agent.handlers.set("slow", ({ answer }) => {
      const busyMs = 605_000 - leftMs;
      world.clock.set(busyMs, () => answer("done"));
    });
    const slow = world.follow(pump.call("slow", [], { timeoutMs: 700_000 }));
    await world.run(605_000 - leftMs - 1_000);
    const second = world.follow(pump.call("echo", [2]));
    await world.run(2_000);
    const third = world.follow(pump.call("echo", [3]));
    await world.run(2_000);
    expect([slow, second, third].map(({ result }) => result)).toEqual(["done", [2], [3]]);
    expect(authsOf(world).map((auth) => Object.keys(auth)[1])).toEqual(["api_token", "api_token"]);
  });

  it("are renewed in time, but not in a loop, if session tokens expire after a minute", async () => {
    const world = new World();
    world.relay.sessionTtlS = 60;
    world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    for (let n = 0; n < 60; n++) {
      const call = world.follow(pump.call("echo", [n]));
      await world.run(10_000);
      expect(call.result).toEqual([n]);
    }
    // In ten minutes: one every 30 to 60 s.
    expect(authsOf(world).length).toBeLessThanOrEqual(20);
    expect(authsOf(world).length).toBeGreaterThanOrEqual(10);
  });

  it("are fetched less and less often from an older relay whose session tokens hardly live", async () => {
    const world = new World();
    world.relay.sessionTtlS = 2;
    world.relay.renews = false;
    world.agent();
    const client = await world.connected();
    const reasons: string[] = [];
    client.on("link", (report) => {
      if (report.state === "offline") reasons.push(report.reason.message);
    });
    const pump = client.agent("pump-7", SECRET);
    for (let n = 0; n < 300; n++) {
      world.follow(pump.call("echo", [n], { timeoutMs: 1_000 }));
      await world.run(1_000);
    }
    expect(authsOf(world).length).toBeLessThan(30);
    expect(reasons).toContain("fetching a fresh session token");
  });

  it("are shown again within seconds while the relay is not available, as `start` says at once", async () => {
    const world = new World();
    world.relay.refuseAuth = () => ({ code: "UNAVAILABLE", error: "not now", retryAfter: 0 });
    const started = world.follow(world.client().start());
    await world.run(1_000);
    expect(started.error).toMatchObject({ code: "UNREACHABLE", relayCode: "UNAVAILABLE" });
    expect(started.error?.message).toBe("the relay refused the login for now: not now");
  });

  it("are renewed at once where a relay ends the session token, unless it does so again", async () => {
    const world = new World();
    await world.connected();
    const end = async (waitMs: number) => {
      world.relay.sayToAll('{"type":"error","code":"SESSION_EXPIRED","error":"over"}');
      await world.run(50);
      world.relay.cutAll(1008);
      await world.run(waitMs);
      return authsOf(world).map((auth) => Object.keys(auth)[1]);
    };
    await world.run(20_000);
    expect(await end(100)).toEqual(["api_token", "api_token"]);
    expect(await end(400)).toHaveLength(2);
    await world.run(5_000);
    expect(authsOf(world)).toHaveLength(3);
  });

  it("are renewed at once when the relay reports that the session token is used up", async () => {
    const world = new World();
    world.agent();
    world.relay.maxRequests = 20;
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await world.run(20_000);
    const codes: (string | undefined)[] = [];
    for (let n = 0; n < 60; n++) {
      const call = world.follow(pump.call("echo", [n]));
      await world.run(1_000);
      codes.push(call.error?.code ?? (call.times === 1 ? "ok" : "waits"));
    }
    expect(new Set(codes)).toEqual(new Set(["ok", "OUTCOME_UNKNOWN"]));
    expect(codes.filter((code) => code !== "ok")).toHaveLength(3);
  });
});

describe("the renewal of a session token", () => {
  /** A link of its own; `requests` sends that many, `at` is that long after the login. */
  const login = async (sessionTtlS: number, sessionToken: string | null = null) => {
    const world = new World();
    world.relay.sessionTtlS = sessionTtlS;
    if (sessionToken !== null) await world.connected();
    const nothing = () => undefined;
    let onlineAt = 0;
    const accountToken = sessionToken === null ? ACCOUNT_TOKEN : null;
    const link = new RelayLink(
      { url: "", accountToken, sessionToken, presence: false, ports: world.ports },
      {
        online: () => {
          onlineAt = world.clock.now();
        },
        offline: nothing,
        moving: nothing,
        moved: nothing,
        settled: nothing,
        isDrained: () => true,
        refused: nothing,
        received: nothing,
        left: nothing,
      },
    );
    link.start();
    const before = link.renewal();
    await world.run(100);
    const requests = (count: number) => {
      for (let n = 0; n < count; n++) link.sendRequest("{}");
      return link.renewal();
    };
    const at = (ms: number) => {
      world.clock.jump(onlineAt + ms - world.clock.now());
      return link.renewal();
    };
    return { link, before, requests, at };
  };

  it("is due by its requests: soon with 1,000 left, now with 200", async () => {
    const { before, requests } = await login(DAY_S);
    expect([before, requests(0), requests(8_999)]).toEqual(["no", "no", "no"]);
    expect([requests(1), requests(799), requests(1)]).toEqual(["soon", "soon", "now"]);
  });

  it.each([
    ["10 minutes and 20 s", DAY_S, 600_000, 20_000],
    ["half and a quarter", 60, 30_000, 15_000],
  ])("is due by its time: soon and now with %s of it left", async (_, lifeS, soonMs, nowMs) => {
    const { at } = await login(lifeS);
    expect([at(lifeS * 1000 - soonMs - 1), at(lifeS * 1000 - soonMs)]).toEqual(["no", "soon"]);
    expect([at(lifeS * 1000 - nowMs - 1), at(lifeS * 1000 - nowMs)]).toEqual(["soon", "now"]);
  });

  it("is not due, and nothing happens, if the link starts or stops once more", async () => {
    const { link, requests } = await login(DAY_S);
    link.start();
    expect([link.state, requests(0)]).toEqual(["online", "no"]);
    link.stop();
    link.stop();
    link.start();
    expect([link.state, requests(9_999)]).toEqual(["stopped", "no"]);
  });

  it("is not due without an account token, nor once the link has ended", async () => {
    const only = await login(60, testToken("session", 10));
    expect([only.link.state, only.at(59_000)]).toEqual(["online", "no"]);
    const { link, at } = await login(60);
    expect(at(59_000)).toBe("now");
    link.stop();
    expect(link.renewal()).toBe("no");
  });
});

describe("connect", () => {
  it("rejects at the first failure and leaves nothing behind", async () => {
    const world = new World();
    world.relay.reachable = false;
    const away = world.follow(world.client().start());
    await world.run(100);
    expect(away.error).toMatchObject({ code: "UNREACHABLE", retryable: true });
    world.relay.reachable = true;
    world.relay.refuseAuth = () => lockedOut;
    const locked = world.follow(world.client().start());
    await world.run(100);
    expect(locked.error).toMatchObject({ code: "REFUSED", retryable: true });
    world.relay.refuseAuth = () => null;
    world.relay.silent = true;
    const silent = world.follow(world.client().start());
    await world.run(100_000);
    expect(silent.error?.code).toBe("UNREACHABLE");
    expect(world.clock.pending).toBe(0);
  });

  it("asks for presence only if configured", async () => {
    const world = new World();
    world.agent();
    const client = world.client({ presence: true });
    const seen: unknown[] = [];
    client.on("presence", (presence) => seen.push(presence));
    client.start();
    await world.run(100);
    expect(authsOf(world)[0].presence).toBe(true);
    const at = "2026-01-01T00:00:00.000Z";
    expect(seen).toEqual([{ agentId: "pump-7", online: true, at }]);
    const late: unknown[] = [];
    client.on("presence", () => {
      throw new Error("mine");
    });
    client.on("presence", (presence) => late.push(presence));
    const off = client.on("presence", () => late.push("removed"));
    off();
    await world.run(0);
    expect(late).toEqual(seen);
  });
});

describe("presence of agents that there cannot be", () => {
  it("is not told, and a relay that names agents without end fills no memory", async () => {
    let events: LinkEvents | null = null;
    const link: LinkPort = {
      connect: (_url, given) => {
        events = given;
        return { send: () => undefined, close: () => undefined };
      },
    };
    const options = { url: "https://relay.example", accountToken: ACCOUNT_TOKEN };
    const client = new Client(options, { ...new World().ports, link });
    client.start();
    const relay = events as unknown as LinkEvents;
    relay.opened();
    relay.received('{"type":"auth_response","status":"authenticated","session_token":"s"}');
    const name = (agent_id: string, timestamp?: string) =>
      relay.received(JSON.stringify({ type: "agent_status", agent_id, online: true, timestamp }));
    name("a-0", "2026-11-21T09:41:07.250Z".padEnd(50_000));
    for (const id of ["x\npump-8", "", "x".repeat(65)]) name(id);
    for (let n = 1; n < 100_010; n++) name(`a-${n}`);
    const kept: Presence[] = [];
    client.on("presence", (presence) => kept.push(presence));
    await new Promise(setImmediate);
    const first = { agentId: "a-0", online: true, at: "" };
    expect([kept.length, kept[0]]).toEqual([100_000, first]);
  });
});

describe("a lost link", () => {
  it("is retried at growing intervals, with jitter, of at most a minute", async () => {
    const waits: number[][] = [];
    for (const seed of [1, 2]) {
      const world = new World(seed);
      const client = await world.connected();
      await world.run(20_000);
      const tries: number[] = [];
      client.on("link", () => tries.push(world.clock.now()));
      world.relay.reachable = false;
      world.relay.cutAll();
      await world.run(HOUR_MS);
      waits.push(tries.slice(1).map((at, n) => at - (tries[n] as number)));
    }
    for (const gaps of waits) {
      expect(gaps[0]).toBeLessThan(1_100);
      expect(gaps[3]).toBeGreaterThan(3_900);
      expect(Math.min(...gaps.slice(8))).toBeGreaterThan(29_999);
      expect(Math.max(...gaps)).toBeLessThan(60_100);
    }
    expect(waits[0]).not.toEqual(waits[1]);
  });

  it.each<[string, (relay: MemoryRelay) => void, string]>([
    ["the relay ends it", (relay) => relay.cutAll(1006), "the connection closed (1006)"],
    ["it says why", (relay) => relay.cutAll(1011, "full"), "the connection closed (1011 full)"],
    [
      "it says nothing",
      (relay) => {
        relay.silent = true;
      },
      "the relay fell silent",
    ],
  ])("reports why, when %s", async (_, end, why) => {
    const world = new World();
    const client = await world.connected();
    const reasons: string[] = [];
    const lines: unknown[] = [];
    Object.assign(world.ports, { log: (...line: unknown[]) => lines.push(line) });
    client.on("link", (report) => {
      if (report.state === "offline") reasons.push(report.reason.message);
    });
    end(world.relay);
    await world.run(80_000);
    expect(reasons).toEqual([`no connection to the relay: ${why}`]);
    const retryInMs = expect.any(Number);
    expect(lines).toEqual([["warn", "link lost", { reason: why, retryInMs }]]);
  });

  it("that fell silent is given up by a clock with fractions, too", async () => {
    for (let n = 0; n < 30; n++) {
      const world = new World();
      world.clock.jump(229_000.1 + n / 7);
      const client = await world.connected();
      let silentSince = Number.NaN;
      client.on("link", () => {
        silentSince = world.clock.now();
      });
      world.relay.silent = true;
      let alarms = 0;
      const { set } = world.clock;
      world.clock.set = (ms, fn) => {
        if (++alarms > 100) throw new Error("it does not come to an end");
        return set.call(world.clock, ms, fn);
      };
      await world.run(76_000);
      expect(silentSince).toBeGreaterThan(229_000);
    }
  });

  it("is restored less and less often if each one ends soon after its login", async () => {
    const world = new World();
    const client = await world.connected();
    await world.run(60_000);
    client.on("link", ({ state }) => {
      if (state === "online") world.clock.set(1_000, () => world.relay.cutAll());
    });
    world.relay.cutAll();
    await world.run(300_000);
    expect(authsOf(world).length).toBeLessThan(15);
  });

  it("gives a relay 20 s for the connection and 30 s for the answer to the login", async () => {
    const world = new World();
    world.relay.reachable = false;
    const away = world.follow(world.client().start());
    await world.run(10);
    expect(away.error?.message).toBe("no connection to the relay: refused");
    world.relay.reachable = true;
    const connect = world.relay.connect.bind(world.relay);
    world.relay.connect = () => ({ send: () => undefined, close: () => undefined });
    const stuck = world.follow(world.client().start());
    await world.run(19_999);
    expect(stuck.times).toBe(0);
    await world.run(1);
    expect(stuck.error?.message).toBe("no connection to the relay: no connection in time");
    world.relay.connect = (url, events) => connect(url, { ...events, received: () => undefined });
    const mute = world.follow(world.client().start());
    await world.run(30_000);
    expect(mute.times).toBe(0);
    await world.run(10);
    expect(mute.error?.message).toBe("no connection to the relay: no answer to auth in time");
  });

  it("reconnects at the time that a restarting relay requested, not before", async () => {
    const world = new World();
    await world.connected();
    world.relay.restart(40);
    await world.run(39_900);
    expect(authsOf(world)).toHaveLength(1);
    await world.run(1_000);
    expect(authsOf(world)).toHaveLength(2);
  });

  it("is restored within half a second of that time, by each client at another moment", async () => {
    const moments = [1, 2, 3, 4].map(async (seed) => {
      const world = new World(seed);
      const client = await world.connected();
      const online: number[] = [];
      client.on("link", () => online.push(world.clock.now()));
      world.relay.restart(40);
      await world.run(41_000);
      return online.at(-1) as number;
    });
    const sorted = (await Promise.all(moments)).toSorted((a, b) => a - b);
    const [first, last] = [sorted.at(0) as number, sorted.at(-1) as number];
    expect(last - first).toBeGreaterThan(20);
    expect(last - first).toBeLessThan(500);
  });

  it("is restored after the time requested, however often the relay says so before", async () => {
    const world = new World();
    await world.connected();
    for (let n = 0; n < 4; n++) world.relay.sayToAll(encodeRestarting("The relay restarts", 10));
    world.relay.restart(10);
    await world.run(11_000);
    expect([authsOf(world).length, world.relay.connectionCount]).toEqual([2, 1]);
  });

  it("is detected 75 s after the relay's last message", async () => {
    const world = new World();
    const client = await world.connected();
    const reports: LinkReport[] = [];
    client.on("link", (report) => reports.push(report));
    await world.run(10 * 60_000);
    expect(reports).toEqual([]);
    expect(world.relay.received.filter((text) => text === '{"type":"pong"}').length).toBe(20);
    world.relay.silent = true;
    await world.run(45_000);
    expect(reports).toEqual([]);
    await world.run(31_000);
    expect(reports.map(({ state }) => state)).toEqual(["offline"]);
  });

  it("ignores whatever else the relay may send", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    for (const message of [
      {},
      { type: 5 },
      { type: "agent_status" },
      { type: "auth_response", status: "failed", code: "INVALID_TOKEN" },
      { type: "auth_response", status: "authenticated", session_token: testToken("session", 77) },
      { type: "error", code: "AGENT_OFFLINE" },
      { type: "error", code: "AGENT_OFFLINE", sid: "AAAAAAAAAAAAAAAAAAAAAA" },
      { type: "error", code: "NEW_IN_A_LATER_VERSION" },
      { type: "relay", payload: "not JSON" },
      { type: "relay", payload: [] },
      { v: "1", sid: "AAAAAAAAAAAAAAAAAAAAAA.B", seq: 1, p: "" },
      [1],
    ]) {
      world.relay.sayToAll(JSON.stringify(message));
    }
    const call = world.follow(client.agent("pump-7", SECRET).call("echo", [1]));
    await world.run(200);
    expect(call.result).toEqual([1]);
    world.relay.cutAll();
    await world.run(5_000);
    expect(authsOf(world).at(-1).session_token).toBe(testToken("session", 10));
  });
});

describe("a relay that restarts and keeps its links for a while", () => {
  const restarting = (seconds: number) => encodeRestarting("The relay restarts", seconds);

  it.each([
    ["", false],
    [" that asked for presence", true],
  ])("loses no call of a client%s", async (_, presence) => {
    const world = new World();
    const agent = world.agent();
    const client = await world.connected({ presence });
    const pump = client.agent("pump-7", SECRET);
    const calls = [world.follow(pump.call("echo", ["warm"]))];
    await world.run(200);
    world.relay.sayToAll(restarting(1));
    for (let n = 0; n < 200; n++) {
      calls.push(world.follow(pump.call("echo", [n], { timeoutMs: 10_000 })));
      if (presence) world.relay.setPresence("pump-7", true);
      await world.run(20);
    }
    await world.run(40_000);
    expect(calls.filter(({ error, times }) => error !== undefined || times !== 1)).toEqual([]);
    expect(new Set(agent.executed).size).toBe(201);
    expect(agent.executed).toHaveLength(201);
    expect([authsOf(world).length, world.relay.connectionCount]).toEqual([2, 1]);
  });

  it.each([
    ["once they are there", 800, 800],
    ["after two seconds in any case", 5_000, 2_000],
  ])("is left for another one after the answers in flight: %s", async (_, answerMs, movesMs) => {
    const world = new World();
    const agent = world.agent();
    agent.handlers.set("slow", ({ answer }) => {
      world.clock.set(answerMs, () => answer("done"));
    });
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    await world.run(1);
    const warm = world.follow(pump.call("echo", ["warm"]));
    await world.run(300);
    expect(warm.result).toEqual(["warm"]);
    const slow = world.follow(pump.call("slow"));
    world.relay.sayToAll(restarting(0));
    await world.run(200);
    const next = world.follow(pump.call("echo", [1]));
    await world.run(movesMs - 400);
    expect([slow.times, next.times]).toEqual([0, 0]);
    await world.run(600);
    expect(next.result).toEqual([1]);
    await world.run(answerMs);
    expect(slow.result).toBe("done");
    expect(agent.executed).toHaveLength(3);
  });

  it("is left as soon as it asks, however many restarts before that one have ended well", async () => {
    const world = new World();
    await world.connected();
    for (let links = 2; links < 10; links++) {
      await world.run(HOUR_MS);
      world.relay.sayToAll(restarting(1));
      await world.run(1_500);
      expect(authsOf(world)).toHaveLength(links);
    }
  });

  it("is not asked in a loop if it accepts each link and restarts at once", async () => {
    const world = new World();
    await world.connected();
    for (let n = 0; n < 600; n++) {
      world.relay.sayToAll(restarting(0));
      await world.run(100);
    }
    expect(authsOf(world).length).toBeLessThanOrEqual(12);
  });

  it("is left twice if the next node restarts too, while calls wait to be sent there", async () => {
    const world = new World();
    const agent = world.agent();
    agent.handlers.set("slow", ({ answer }) => {
      world.clock.set(800, () => answer("done"));
    });
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const warm = world.follow(pump.call("echo", ["warm"]));
    await world.run(300);
    expect(warm.error).toBeUndefined();
    const slow = world.follow(pump.call("slow"));
    world.relay.sayToAll(restarting(0));
    await world.run(400);
    expect([slow.times, authsOf(world).length]).toEqual([0, 2]);
    world.relay.sayToAll(restarting(0));
    await world.run(10_000);
    expect(slow.result).toBe("done");
    expect([authsOf(world).length, world.relay.connectionCount]).toEqual([3, 1]);
  });

  it("is left for the next one also if it ends while that one logs in", async () => {
    const world = new World();
    world.agent();
    const client = await world.connected();
    const pump = client.agent("pump-7", SECRET);
    const warm = world.follow(pump.call("echo", ["warm"]));
    await world.run(300);
    const states: string[] = [];
    client.on("link", ({ state }) => states.push(state));
    world.relay.sayToAll(restarting(0));
    await world.run(13);
    expect(world.relay.connectionCount).toBe(2);
    world.relay.cutOldest();
    const call = world.follow(pump.call("echo", [1]));
    await world.run(1_000);
    expect([warm.result, call.result, states]).toEqual([["warm"], [1], []]);
    expect([authsOf(world).length, world.relay.connectionCount]).toEqual([2, 1]);
  });

  it("gets at most two more links, however often it announces its restart", async () => {
    const world = new World();
    await world.connected();
    let most = 0;
    for (let n = 0; n < 500; n++) {
      world.relay.sayToOldest(restarting(0));
      await world.run(20);
      most = Math.max(most, world.relay.connectionCount);
    }
    expect(most).toBeLessThanOrEqual(3);
  });

  it("is asked once if it refuses the second link, and less and less often if that fails", async () => {
    const world = new World();
    await world.connected();
    world.relay.refuseAuth = () => lockedOut;
    world.relay.sayToAll(restarting(0));
    await world.run(60_000);
    expect(authsOf(world)).toHaveLength(2);

    world.relay.refuseAuth = () => null;
    world.relay.reachable = false;
    const { connect } = world.relay;
    let dials = 0;
    world.relay.connect = (...given) => {
      dials += 1;
      return connect.apply(world.relay, given);
    };
    world.relay.sayToAll(restarting(0));
    await world.run(60_000);
    expect([dials > 3, dials < 12]).toEqual([true, true]);
  });
});
