/**
 * Stores that answer at once, late and never: waiting peers are told, and nothing is kept for ever.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ALONE } from "../core/bus.ts";
import { shortestMoveMs } from "../core/lifecycle/drain.ts";
import { TURN_COST } from "../core/limits/limits.ts";
import { Lockout } from "../core/limits/lockout.ts";
import type { HubLink } from "../core/link.ts";
import type { AuthRequest, AuthResult, HubLookups } from "../core/ports.ts";
import { authOf, envelope, type Fields, packet } from "../core/testing/test-hub.ts";
import { type HubParts, type RunningHub, runHub } from "./hub-driver.ts";

const CLIENT = {
  ok: true,
  role: "client",
  userId: "ann",
  sessionHash: "hash",
  sessionToken: "token",
  expiresAtMs: Number.MAX_SAFE_INTEGER,
  requestsUsed: 0,
} as const satisfies AuthResult;

/** The hub's turns are those of the event loop: everything is faked except `setImmediate`. */
const FAKED = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] as const;
const turn = setImmediate;

let running: RunningHub;
let authenticate: HubLookups["authenticate"];
let ownerOf: HubLookups["ownerOf"];
let logged: unknown[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: [...FAKED] });
  logged = [];
  ownerOf = () => new Promise(() => {});
  running = start();
});

const start = (more: Partial<HubParts> = {}): RunningHub =>
  runHub({
    lookups: {
      authenticate: (request) => authenticate(request),
      ownerOf: (agentId) => ownerOf(agentId),
      labelsOf: () => null,
    },
    writeBehind: { saveRequestsUsed: async () => {}, agentSeen: async () => {} },
    lockout: new Lockout(),
    clocks: { steadyMs: Date.now, wallMs: Date.now },
    log: { error: (...args: unknown[]) => logged.push(args) },
    ...more,
  });

afterEach(() => {
  running.stop();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

/** A connection that records the hub's messages. */
const connect = () => {
  const said: Fields[] = [];
  const codes: number[] = [];
  const link: HubLink = {
    send: (frame) => said.push(JSON.parse(frame as string) as Fields),
    queued: () => 0,
    close: (code) => codes.push(code),
    pause: () => {},
    resume: () => {},
  };
  const connection = running.hub.connect(link, "192.0.2.1", Date.now());
  const say = (message: Fields): void => {
    const text = JSON.stringify(message);
    running.hub.receive(connection, text, Buffer.from(text), Date.now());
  };
  return { said, codes, say, link, connection };
};

it("an auth that the store does not answer fails with UNAVAILABLE, and its link ends", async () => {
  authenticate = () => new Promise(() => {});
  const { said, codes, say, connection } = connect();
  say(authOf("lamp"));
  await vi.advanceTimersByTimeAsync(29_000);
  expect(said).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(said).toMatchObject([
    { type: "auth_response", status: "failed", code: "UNAVAILABLE", retry_after: 0 },
    { type: "error", code: "AUTH_TIMEOUT" },
  ]);
  expect(codes).toEqual([1008]);
  running.hub.closed(connection, Date.now());
  expect(running.hub.connectionCount).toBe(0);
  expect(logged).toHaveLength(1);
});

it("a look-up that throws counts as failed", () => {
  authenticate = () => {
    throw new Error("the store is closed");
  };
  const { said, codes, say } = connect();
  say(authOf("lamp"));
  expect(said).toMatchObject([{ type: "auth_response", status: "failed", code: "UNAVAILABLE" }]);
  expect(codes).toEqual([]);
  expect(logged).toHaveLength(1);
});

it("an agent that left before the store answered is not claimed from other nodes", async () => {
  const claim = vi.fn(ALONE.claim);
  running.stop();
  running = start({ bus: { ...ALONE, claim } });
  const { role: _, requestsUsed: __, ...common } = CLIENT;
  authenticate = async () => ({ ...common, role: "agent", agentId: "lamp", loginNumber: 1 });
  const [gone, there] = [connect(), connect()];
  for (const { say } of [gone, there]) say(authOf("lamp"));
  running.hub.closed(gone.connection, Date.now());
  await vi.advanceTimersByTimeAsync(10);
  expect(claim).toHaveBeenCalledTimes(1);
  expect(gone.said).toEqual([]);
  expect(there.said).toMatchObject([{ status: "authenticated" }]);
});

it("an auth is wanted until its sender has hung up or is locked out", async () => {
  running.stop();
  const lockout = new Lockout();
  running = start({ lockout });
  const asked: AuthRequest[] = [];
  authenticate = (request) => {
    asked.push(request);
    return new Promise(() => {});
  };
  const [gone, there] = [connect(), connect()];
  for (const { say } of [gone, there]) say(authOf("lamp"));
  const wanted = () => asked.map(({ isWanted }) => isWanted?.());
  expect(wanted()).toEqual([true, true]);
  running.hub.closed(gone.connection, Date.now());
  expect(wanted()).toEqual([false, true]);
  for (let i = 0; i < 5; i += 1) lockout.fail("192.0.2.1", Date.now());
  expect(wanted()).toEqual([false, false]);
  await vi.advanceTimersByTimeAsync(31_000);
});

it("an answer that arrives too late admits nobody", async () => {
  let answer: (result: AuthResult) => void = () => {};
  authenticate = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  const { said, say } = connect();
  say(authOf("lamp"));
  await vi.advanceTimersByTimeAsync(31_000);
  answer(CLIENT);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(said.map(({ status }) => status)).not.toContain("authenticated");
});

it("an envelope whose owner cannot be looked up is refused, and the link stays open", async () => {
  authenticate = () => Promise.resolve(CLIENT);
  const { said, codes, say } = connect();
  say({ type: "auth", api_token: "acct:ann", client_type: "client" });
  await vi.advanceTimersByTimeAsync(10);
  say(envelope(packet("C"), { agent_id: "lamp" }));
  say({ type: "ping" });
  await vi.advanceTimersByTimeAsync(31_000);
  const rest = said.slice(1).filter(({ type }) => type !== "ping");
  expect(rest).toMatchObject([{ type: "error", code: "UNAVAILABLE", sid: "C" }, { type: "pong" }]);
  expect(codes).toEqual([]);
});

it("an immediate answer is used before the message's call returns, and needs no timer", () => {
  const timers = vi.getTimerCount();
  authenticate = () => CLIENT;
  ownerOf = () => null;
  const { said, say } = connect();
  say({ type: "auth", api_token: "acct:ann", client_type: "client" });
  say(envelope(packet("C"), { agent_id: "lamp" }));
  expect(said).toMatchObject([
    { type: "auth_response", status: "authenticated" },
    { type: "error", code: "AGENT_NOT_FOUND", sid: "C" },
  ]);
  expect(vi.getTimerCount()).toBe(timers);
});

it.each([
  ["authenticated", CLIENT, null],
  ["ownerFound", CLIENT, "ann"],
  ["authenticated", Promise.resolve(CLIENT), null],
  ["ownerFound", Promise.resolve(CLIENT), Promise.resolve("ann")],
  ["ownerUnknown", Promise.resolve(CLIENT), new Promise<null>(() => {})],
] as const)(
  "a hub that fails in %s ends the connection concerned with 1011 (answers %o, %o)",
  async (what, result, owner) => {
    authenticate = () => result;
    ownerOf = () => owner;
    const { codes, say } = connect();
    const other = connect();
    vi.spyOn(running.hub, what).mockImplementation(() => {
      throw new Error("a bug");
    });
    say({ type: "auth", api_token: "acct:ann", client_type: "client" });
    await vi.advanceTimersByTimeAsync(10);
    say(envelope(packet("C"), { agent_id: "lamp" }));
    await vi.advanceTimersByTimeAsync(31_000);
    expect(codes).toEqual([1011]);
    expect(other.codes).toEqual([1008]); // it never authenticated
  },
);

it("a hub that fails on held messages ends their connection with 1011, and continues with the rest", async () => {
  const [ann, bob] = [connect(), connect()];
  for (const [{ say }, userId] of [
    [ann, "ann"],
    [bob, "bob"],
  ] as const) {
    authenticate = () => Promise.resolve({ ...CLIENT, userId });
    say({ type: "auth", api_token: `acct:${userId}`, client_type: "client" });
    await vi.advanceTimersByTimeAsync(10);
  }
  const pings = 2 * TURN_COST;
  for (const { say } of [ann, bob]) for (let i = 0; i < pings; i++) say({ type: "ping" });
  vi.spyOn(ann.link, "send").mockImplementation(() => {
    throw new Error("a bug");
  });
  for (let i = 0; i < 4; i++) await new Promise((resolve) => turn(resolve));
  expect(ann.codes).toEqual([1011]);
  expect(bob.codes).toEqual([]);
  expect(bob.said.filter(({ type }) => type === "pong")).toHaveLength(pings);
  expect(logged).toHaveLength(1);
});

it("requests whose reservation is answered too late are returned", async () => {
  running.stop();
  const saveRequestsUsed = vi.fn(async () => {});
  const reserved = Promise.withResolvers<number>();
  running = start({
    reserve: () => reserved.promise,
    writeBehind: { saveRequestsUsed, agentSeen: async () => {} },
  });
  authenticate = () => CLIENT;
  const { said, say } = connect();
  say({ type: "auth", api_token: "x", client_type: "client" });
  say(envelope("hello", { agent_id: "lamp" }));
  await vi.advanceTimersByTimeAsync(31_000);
  expect(said).toContainEqual(expect.objectContaining({ code: "UNAVAILABLE" }));
  reserved.resolve(64);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(saveRequestsUsed.mock.calls).toEqual([["hash", 0, -64]]);
});

it("a hub that fails on a message that waited for a reservation ends only that connection", async () => {
  running.stop();
  running = start({ reserve: async () => 10 });
  authenticate = () => Promise.resolve(CLIENT);
  const [first, second] = [connect(), connect()];
  for (const { say } of [first, second]) {
    say({ type: "auth", api_token: "acct:ann", client_type: "client" });
  }
  await vi.advanceTimersByTimeAsync(10);
  vi.spyOn(first.link, "send").mockImplementation(() => {
    throw new Error("a bug");
  });
  for (const { say } of [first, second]) say(packet("C"));
  await vi.advanceTimersByTimeAsync(10);
  expect([first.codes, second.codes]).toEqual([[1011], []]);
  expect(second.said.at(-1)).toMatchObject({ type: "error", sid: "C" });
});

describe("a node that is stopped while no other node is ready", () => {
  const TIMEOUT_MS = 27_000;
  const DELAY_MS = 2000;
  let isReady: boolean;
  let closedAt: number | null;

  /** A node with one client, and whether its drain has ended. */
  const stopped = (bus: Partial<typeof ALONE> = {}, atOnce = false) => {
    running.stop();
    isReady = false;
    closedAt = null;
    const timer: HubParts["timer"] = {
      now: Date.now,
      every: (ms, fn) => {
        const interval = setInterval(fn, ms);
        return () => clearInterval(interval);
      },
      after: (ms, fn) => {
        const timeout = setTimeout(fn, ms);
        return () => clearTimeout(timeout);
      },
      soon: (fn) => void turn(fn),
    };
    const node = { ...ALONE, expectsNode: () => true, hasReadyNode: () => isReady, ...bus };
    running = start({ bus: node, timer });
    authenticate = async () => CLIENT;
    const peer = connect();
    peer.say(authOf("ann"));
    const from = Date.now();
    const close = () => {
      closedAt = Date.now() - from;
    };
    const over = running.drain(TIMEOUT_MS, { close, delayMs: DELAY_MS, atOnce });
    const leave = () => running.hub.closed(peer.connection, Date.now());
    const told = () => peer.said.filter(({ code }) => code === "RESTARTING").length;
    return { over, leave, told };
  };

  it("serves its peers until another one is ready, and then moves them", async () => {
    const { over, leave, told } = stopped();
    await vi.advanceTimersByTimeAsync(10_000);
    expect([closedAt, told()]).toEqual([null, 0]);
    isReady = true;
    await vi.advanceTimersByTimeAsync(200);
    expect(closedAt).toBeGreaterThanOrEqual(10_000);
    expect(told()).toBe(0);
    await vi.advanceTimersByTimeAsync(DELAY_MS);
    expect(told()).toBe(1);
    leave();
    await vi.advanceTimersByTimeAsync(200);
    expect(await over).toBe(true);
  });

  it("moves them in time before its end if no other one becomes ready", async () => {
    const { over, leave, told } = stopped();
    await vi.advanceTimersByTimeAsync(DELAY_MS + TIMEOUT_MS - shortestMoveMs(1) + 200);
    expect(told()).toBe(1);
    await vi.advanceTimersByTimeAsync(shortestMoveMs(1));
    expect(await over).toBe(false);
    leave();
  });

  it("does not wait if it has no peers, if there is no other node, or if it has failed", async () => {
    const first = stopped();
    first.leave();
    await vi.advanceTimersByTimeAsync(DELAY_MS + 200);
    expect(await first.over).toBe(true);
    for (const [bus, hasFailed] of [[{ expectsNode: () => false }], [{}, true]] as const) {
      const { over, told, leave } = stopped(bus, hasFailed);
      await vi.advanceTimersByTimeAsync(DELAY_MS + 200);
      expect(told()).toBe(1);
      leave();
      await vi.advanceTimersByTimeAsync(200);
      expect(await over).toBe(true);
    }
  });

  it("lets those before it go first, and says at once that it accepts no more peers", async () => {
    const sayReadiness = vi.fn();
    const { leave, over } = stopped({ rank: () => 2, sayReadiness });
    isReady = true;
    await vi.advanceTimersByTimeAsync(400);
    expect([closedAt, sayReadiness.mock.calls.length]).toEqual([null, 0]);
    await vi.advanceTimersByTimeAsync(200);
    expect([closedAt, sayReadiness.mock.calls.length]).toEqual([500, 1]);
    leave();
    await vi.advanceTimersByTimeAsync(DELAY_MS);
    expect(await over).toBe(true);
  });
});
