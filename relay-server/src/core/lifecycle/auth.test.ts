import { MAX_TAKEOVERS_PER_MINUTE } from "@blindrelay/protocol";
import { describe, expect, it } from "vitest";
import { ALONE, type Claim, FREE } from "../bus.ts";
import type { AuthResult } from "../ports.ts";
import {
  authOf,
  envelope,
  type Fields,
  hashOf,
  packet,
  type VirtualPeer,
  World,
} from "../testing/test-hub.ts";

const good = { type: "auth", api_token: "acct:ann", client_type: "client" };
const wrong = { type: "auth", api_token: "acct:nobody", client_type: "client" };

const world = (): World => {
  const made = new World();
  made.user("ann", "pump-7", "lamp");
  made.user("bob", "bobs");
  return made;
};

const failed = (code: string, retryAfter: number, error: unknown = expect.any(String)): Fields => ({
  type: "auth_response",
  status: "failed",
  error,
  code,
  retry_after: retryAfter,
});

/** What the store says of a login of the lamp. */
const lampsLogin = (w: World): AuthResult =>
  w.store.authenticate({
    apiToken: "agt:lamp",
    agentId: "lamp",
    clientType: "agent",
    address: "192.0.2.1",
    nowMs: w.now,
  });

/** Fails `count` times from an address, on as many connections as that takes. */
const failFrom = (w: World, address: string, count: number): VirtualPeer => {
  let peer = w.connect(address);
  for (let i = 0; i < count; i++) {
    if (peer.closed !== null) peer = w.connect(address);
    peer.take();
    peer.say(wrong);
  }
  return peer;
};

describe("the first auth", () => {
  it("is answered with a session token and the seconds it has left", () => {
    const w = world();
    const peer = w.connect();
    peer.say(good);
    expect(peer.take()).toEqual([
      {
        type: "auth_response",
        status: "authenticated",
        session_token: expect.stringContaining("sess:client:ann"),
        expires_in: 86400,
        max_requests: 10_000,
      },
    ]);
  });

  it("must come within 30 s, or AUTH_TIMEOUT and 1008", () => {
    const w = world();
    const peer = w.connect();
    w.advance(29_900);
    expect(peer.closed).toBeNull();
    w.advance(200);
    expect(peer.codes()).toEqual(["AUTH_TIMEOUT"]);
    expect(peer.closed?.code).toBe(1008);
  });

  it("may fail and be tried again inside the same 30 s", () => {
    const w = world();
    const peer = w.connect();
    w.advance(20_000);
    peer.say(wrong);
    expect(peer.take()).toEqual([failed("INVALID_TOKEN", 0, "Invalid token")]);
    expect(peer.closed).toBeNull();
    peer.say(good);
    expect(peer.take()).toMatchObject([{ status: "authenticated" }]);
    w.advance(60_000);
    expect(peer.closed).toBeNull();
  });

  it("does not get a new 30 s by failing", () => {
    const w = world();
    const peer = w.connect();
    w.advance(20_000);
    peer.say(wrong);
    peer.take();
    w.advance(10_100);
    expect(peer.codes()).toEqual(["AUTH_TIMEOUT"]);
  });

  it("does not time out during the look-up, but at once if that fails late", () => {
    const w = world();
    w.slowStore = true;
    const [slow, failing] = [w.connect(), w.connect()];
    w.advance(29_000);
    slow.say(good);
    failing.say(wrong);
    w.advance(5_000);
    expect(slow.closed).toBeNull();
    w.answer();
    expect(slow.take()).toMatchObject([{ status: "authenticated" }]);
    expect(failing.take()).toMatchObject([{ status: "failed" }, { code: "AUTH_TIMEOUT" }]);
    expect(failing.closed?.code).toBe(1008);
  });

  it("closes with 1008 at the third failure on one connection, malformed ones included", () => {
    const w = world();
    const peer = w.connect();
    peer.say(wrong);
    peer.say({ type: "auth", client_type: "client" });
    expect(peer.closed).toBeNull();
    peer.say(wrong);
    expect(peer.take()).toMatchObject([
      { code: "INVALID_TOKEN", retry_after: 0 },
      { code: "BAD_MESSAGE", retry_after: 0 },
      { code: "INVALID_TOKEN", retry_after: 0 },
    ]);
    expect(peer.closed?.code).toBe(1008);
  });

  it.each([
    ["no token", { type: "auth", client_type: "client" }],
    ["two tokens", { ...good, session_token: "sess:x" }],
    ["a token that is no string", { ...good, api_token: 7 }],
    ["no client_type", { type: "auth", api_token: "acct:ann" }],
    ["an unknown client_type", { ...good, client_type: "robot" }],
    ["an agent without agent_id", { ...authOf("lamp"), agent_id: undefined }],
    ["presence that is no boolean", { ...good, presence: "yes" }],
  ])("with %s is refused as BAD_MESSAGE and not counted against the address", (_, message) => {
    const w = world();
    const peer = w.connect();
    peer.say(message);
    expect(peer.take()).toEqual([failed("BAD_MESSAGE", 0)]);
    expect(w.lockout.failures).toBe(0);
    peer.say(good);
    expect(peer.take()).toMatchObject([{ status: "authenticated" }]);
  });

  it("with a session token returns the same one and its remaining time, rounded up", () => {
    const w = world();
    const { session } = w.client("ann");
    w.advance(1_500);
    const peer = w.connect();
    peer.say({ type: "auth", session_token: session, client_type: "client" });
    expect(peer.take()).toMatchObject([{ session_token: session, expires_in: 86_399 }]);
  });

  it("of an agent is accepted with a session token and its agent_id, and with no other", () => {
    const w = world();
    const first = w.connect();
    first.say(authOf("lamp"));
    const token = first.take()[0]?.session_token;
    first.hangUp();
    const auth = { type: "auth", session_token: token, client_type: "firmware", agent_id: "lamp" };
    const other = w.connect();
    other.say({ ...auth, agent_id: "pump-7" });
    expect(other.take()).toEqual([failed("INVALID_TOKEN", 0, "Invalid token")]);
    const again = w.connect();
    again.say(auth);
    expect(again.take()).toMatchObject([{ status: "authenticated", session_token: token }]);
    expect(w.hub.stats().connections).toMatchObject({ agent: 0, firmware: 1 });
  });

  it("of an agent that has moved to another node leaves that node's figures unchanged", () => {
    const w = world();
    w.slowStore = true;
    const peer = w.connect();
    peer.say(authOf("lamp"));
    const before = w.hub.stats().connections;
    const result = lampsLogin(w);
    w.hub.authenticated(peer.connection, result, w.now, { kind: "superseded" });
    expect(w.hub.stats().connections).toEqual({ ...before, waiting: 0, closing: 1 });
    peer.hangUp();
    expect(w.hub.stats().connections).toEqual({ ...before, waiting: 0, closing: 0 });
  });

  it("of an agent that has moved to another node ends its link once", () => {
    const w = world();
    w.slowStore = true;
    const peer = w.connect();
    peer.say(authOf("lamp"));
    w.hub.authenticated(peer.connection, lampsLogin(w), w.now, { kind: "superseded" });
    w.settle();
    w.advance(60_000);
    expect(peer.take()).toMatchObject([{ status: "authenticated" }, { code: "REPLACED" }]);
  });

  it("passes on the store's text for a token of the wrong kind", () => {
    const w = world();
    const peer = w.connect();
    peer.say({ ...good, api_token: "agt:lamp" });
    expect(peer.take()).toMatchObject([{ code: "WRONG_TOKEN_KIND", retry_after: 0 }]);
  });

  it("with an expired session token fails with SESSION_EXPIRED, not counted", () => {
    const w = world();
    const { session } = w.client("ann");
    w.store.sessions.get(session)!.expiresAtMs = w.now;
    const peer = w.connect();
    peer.say({ type: "auth", session_token: session, client_type: "client" });
    expect(peer.take()).toEqual([failed("SESSION_EXPIRED", 0, "Session token expired")]);
    expect(peer.closed).toBeNull();
    expect(w.lockout.failures).toBe(0);
  });

  it("is answered UNAVAILABLE and not counted while the store is unavailable", () => {
    const w = world();
    w.store.broken = true;
    const peer = w.connect();
    peer.say(good);
    expect(peer.take()).toMatchObject([{ status: "failed", code: "UNAVAILABLE" }]);
    expect(w.lockout.failures).toBe(0);
  });
});

describe("connections of an address that have not authenticated", () => {
  const ADDRESS = "192.0.2.1";

  it("are limited, by address", () => {
    const w = new World({ waitingPerAddress: 2 });
    w.connect(ADDRESS);
    expect(w.hub.hasRoom(ADDRESS)).toBe(true);
    w.connect(ADDRESS);
    expect(w.hub.hasRoom(ADDRESS)).toBe(false);
    expect(w.hub.hasRoom("192.0.2.2")).toBe(true);
  });

  it("are limited by the /64 of IPv6", () => {
    const w = new World({ waitingPerAddress: 2 });
    for (const end of ["1", "2"]) w.connect(`2001:db8:1:2::${end}`);
    expect(w.hub.hasRoom("2001:db8:1:2:ffff::9")).toBe(false);
    expect(w.hub.hasRoom("2001:db8:1:3::1")).toBe(true);
  });

  it.each([
    ["authenticates", (peer: VirtualPeer) => peer.say(good)],
    ["leaves", (peer: VirtualPeer) => peer.hangUp()],
  ])("make room for one more when one %s, and only once", (_, go) => {
    const w = new World({ waitingPerAddress: 2 });
    w.user("ann");
    const [first] = [w.connect(ADDRESS), w.connect(ADDRESS)];
    go(first);
    expect(w.hub.hasRoom(ADDRESS)).toBe(true);
    first.hangUp();
    w.connect(ADDRESS);
    expect(w.hub.hasRoom(ADDRESS)).toBe(false);
  });
});

it("counts a guess whose sender hangs up before the answer", () => {
  const w = new World();
  w.slowStore = true;
  for (let i = 0; i < 5; i += 1) {
    const peer = w.connect("192.0.2.9");
    peer.say({ type: "auth", api_token: "acct:nobody", client_type: "client" });
    peer.hangUp();
  }
  w.slowStore = false;
  w.settle();
  expect(w.lockout.secondsLeft("192.0.2.9", w.now)).toBe(600);
});

describe("before auth", () => {
  it.each([
    ["an envelope", envelope(packet("C.A"), { agent_id: "lamp", request_id: "r1" })],
    ["a bare packet", packet("C.A")],
    ["a ping", { type: "ping" }],
    ["a message of unknown type", { type: "dance" }],
  ])("%s gets AUTH_REQUIRED, the connection stays and the timer runs", (_, message) => {
    const w = world();
    const peer = w.connect();
    peer.say(message);
    expect(peer.codes()).toEqual(["AUTH_REQUIRED"]);
    expect(peer.closed).toBeNull();
    w.advance(30_100);
    expect(peer.codes()).toEqual(["AUTH_TIMEOUT"]);
  });

  it("an error about a packet has its sid and request_id", () => {
    const w = world();
    const peer = w.connect();
    peer.say(envelope(packet("C.A"), { agent_id: "lamp", request_id: "r1" }));
    expect(peer.take()).toMatchObject([{ sid: "C.A", request_id: "r1" }]);
  });

  it("messages behind an auth wait for its answer, in order", () => {
    const w = world();
    const agent = w.agent("lamp");
    w.slowStore = true;
    const peer = w.connect();
    peer.say(good);
    peer.say(envelope(packet("C"), { agent_id: "lamp" }));
    peer.say(packet("C.A"));
    expect(peer.paused).toBe(true);
    expect(agent.take()).toEqual([]);
    w.answer();
    expect(agent.take()).toMatchObject([{ type: "relay" }, { sid: "C.A" }]);
    expect(peer.paused).toBe(false);
  });

  it("may be tried again if more was revoked meanwhile than is remembered", () => {
    const w = world();
    w.slowStore = true;
    const peer = w.connect();
    peer.say(good);
    for (let i = 0; i <= 1000; i++) w.hub.endSession(`#${i}`, "REVOKED", w.now);
    w.answer();
    expect(peer.take()).toEqual([failed("UNAVAILABLE", 0, "Too much has changed meanwhile")]);
    w.slowStore = false;
    peer.say(good);
    expect(peer.take()).toMatchObject([{ status: "authenticated" }]);
  });

  it("messages behind an auth that fails get AUTH_REQUIRED", () => {
    const w = world();
    w.slowStore = true;
    const peer = w.connect();
    peer.say(wrong);
    peer.say(packet("C.A"));
    peer.say(good);
    w.answer();
    w.answer();
    expect(peer.take()).toMatchObject([
      { code: "INVALID_TOKEN" },
      { code: "AUTH_REQUIRED" },
      { status: "authenticated" },
    ]);
  });

  it("the held messages are bounded", () => {
    const w = world();
    w.slowStore = true;
    const peer = w.connect();
    peer.say(good);
    const large = packet("C.A", 1, "A".repeat(60_000));
    for (let i = 0; i < 5; i++) peer.say(large);
    expect(peer.take()).toMatchObject([{ code: "RATE_LIMITED", sid: "C.A" }]);
    w.answer();
    w.settle();
    peer.take();
    // For the next look-up all the room is available again.
    peer.say(envelope("x", { agent_id: "unknown" }));
    for (let i = 0; i < 4; i++) peer.say(large);
    expect(peer.take()).toEqual([]);
  });
});

describe("a second auth", () => {
  it("gets BAD_MESSAGE and changes nothing", () => {
    const w = world();
    const peer = w.client("ann");
    for (let i = 0; i < 4; i++) peer.say(good);
    const refusal = { code: "BAD_MESSAGE", error: "Already authenticated" };
    expect(peer.take()).toMatchObject(Array(4).fill(refusal));
    expect(peer.closed).toBeNull();
  });
});

describe("lockout", () => {
  it("begins with the fifth failure of an address: retry_after 600, then 1008", () => {
    const w = world();
    const peer = failFrom(w, "198.51.100.1", 5);
    expect(peer.take()).toEqual([failed("INVALID_TOKEN", 600, "Invalid token")]);
    expect(peer.closed?.code).toBe(1008);
  });

  it("refuses a valid token too, with the seconds left, and closes with 1008", () => {
    const w = world();
    failFrom(w, "198.51.100.1", 5);
    w.advance(100_000);
    const peer = w.connect("198.51.100.1");
    peer.say(good);
    expect(peer.take()).toEqual([failed("LOCKED_OUT", 500)]);
    expect(peer.closed?.code).toBe(1008);
    w.advance(500_000);
    const later = w.connect("198.51.100.1");
    later.say(good);
    expect(later.take()).toMatchObject([{ status: "authenticated" }]);
  });

  it("refuses without a look-up, which would cost the relay time", () => {
    const w = world();
    failFrom(w, "198.51.100.1", 5);
    w.slowStore = true;
    const peer = w.connect("198.51.100.1");
    peer.say(good);
    expect(w.lookUps).toEqual([]);
    const text = "Too many failed authentications from this address";
    expect(peer.take()).toEqual([failed("LOCKED_OUT", 600, text)]);
  });

  it("refuses a valid token if its look-up was in progress when the lockout began", () => {
    const w = world();
    failFrom(w, "198.51.100.1", 3);
    w.slowStore = true;
    const peers = [wrong, wrong, good].map((auth) => {
      const peer = w.connect("198.51.100.1");
      peer.say(auth);
      return peer;
    });
    w.answer();
    expect(peers.map((peer) => peer.inbox[0]?.code)).toEqual([
      "INVALID_TOKEN",
      "INVALID_TOKEN",
      "LOCKED_OUT",
    ]);
  });

  it("does not affect open connections and other addresses", () => {
    const w = world();
    const online = w.connect("198.51.100.1");
    online.say(good);
    failFrom(w, "198.51.100.1", 5);
    expect(online.closed).toBeNull();
    online.take();
    online.say({ type: "ping" });
    expect(online.take()).toEqual([{ type: "pong" }]);
    const other = w.connect("198.51.100.2");
    other.say(good);
    expect(other.take()).toMatchObject([{ status: "authenticated" }]);
  });

  it("counts IPv6 by its /64", () => {
    const w = world();
    for (let i = 1; i <= 5; i++) w.connect(`2001:db8:1:2::${i}`).say(wrong);
    const peer = w.connect("2001:db8:1:2:ffff::9");
    peer.say(good);
    expect(peer.take()).toMatchObject([{ code: "LOCKED_OUT" }]);
    const neighbour = w.connect("2001:db8:1:3::1");
    neighbour.say(good);
    expect(neighbour.take()).toMatchObject([{ status: "authenticated" }]);
  });

  it("does not count credentials that were valid once", () => {
    const w = world();
    const { session } = w.client("ann");
    w.store.sessions.get(session)!.expiresAtMs = w.now;
    for (let i = 0; i < 10; i++) {
      w.connect("198.51.100.1").say({
        type: "auth",
        session_token: session,
        client_type: "client",
      });
    }
    const peer = w.connect("198.51.100.1");
    peer.say(good);
    expect(peer.take()).toMatchObject([{ status: "authenticated" }]);
  });
});

describe("the same agent twice", () => {
  it("the newer wins, the older gets REPLACED and 1008, and presence does not change", () => {
    const w = world();
    const client = w.client("ann");
    const older = w.agent("lamp");
    client.take();
    const newer = w.agent("lamp");
    expect(older.codes()).toEqual(["REPLACED"]);
    expect(older.closed?.code).toBe(1008);
    expect(newer.closed).toBeNull();
    w.advance(1_000);
    expect(client.take()).toEqual([]);
    client.say(envelope(packet("C"), { agent_id: "lamp" }));
    expect(newer.take()).toHaveLength(1);
  });

  it("more than 5 takeovers a minute: the new one gets TAKEOVER_LOOP, 60 s, 1008, uncounted", () => {
    const w = world();
    w.agent("lamp");
    for (let i = 0; i < 5; i++) w.agent("lamp");
    const sixth = w.connect();
    sixth.say(authOf("lamp"));
    expect(sixth.take()).toEqual([failed("TAKEOVER_LOOP", 60)]);
    expect(sixth.closed?.code).toBe(1008);
    expect(w.lockout.failures).toBe(0);
    expect(w.hub.isOnline("lamp")).toBe(true);
    w.advance(60_000);
    w.agent("lamp");
  });
});

describe("an agent on several nodes", () => {
  const MINUTE_MS = 60_000;

  /** A hub, and what its bus is told of agents. */
  const node = () => {
    const told: unknown[] = [];
    const w = new World(
      {},
      {
        ...ALONE,
        agentOnline: (user, agent) => told.push(["online", user, agent]),
        agentOffline: (...what) => told.push(["offline", ...what]),
      },
    );
    w.user("ann", "lamp");
    /** A login of the lamp, and what the other nodes say about it. */
    const login = (claim: Claim, loginNumber: number): VirtualPeer => {
      w.slowStore = true;
      const peer = w.connect();
      peer.say(authOf("lamp"));
      w.lookUps.splice(0);
      const result = lampsLogin(w);
      w.hub.authenticated(peer.connection, { ...result, loginNumber } as AuthResult, w.now, claim);
      w.slowStore = false;
      return peer;
    };
    return { w, told, login };
  };

  const yielded = (more: object = {}): Claim => ({
    kind: "yielded",
    onlineForMs: 5_000,
    takeoverAgesMs: [MINUTE_MS, 20_000, 10_000],
    ...more,
  });

  it("is new if no other node has had it", () => {
    const { w, told, login } = node();
    login(FREE, 1);
    const agent = { agentId: "lamp", loginNumber: 1, onlineForMs: 0 };
    expect(told).toEqual([["online", "ann", agent]]);
    w.advance(1_000);
    expect(w.hub.claimAgent("lamp", "B", 2, w.now)).toEqual({
      kind: "yielded",
      onlineForMs: 1_000,
      takeoverAgesMs: [],
      isPlanned: false,
    });
    expect(w.hub.counters).toMatchObject({ authSuccesses: 1, takeovers: 1 });
  });

  it("is told to clients here that were told it is gone with its node, though that has had it", () => {
    const { w, login } = node();
    const client = w.client("ann");
    const { remoteAgents } = w.hub;
    const lamp = { agentId: "lamp", loginNumber: 1, onlineForMs: 0 };
    remoteAgents.online("ann", "B", [lamp], true, w.now);
    remoteAgents.nodeLost("B", w.now);
    login(yielded(), 2);
    w.settle();
    expect(client.take().map(({ online }) => online)).toEqual([true, false, true]);
  });

  it.each([
    ["with the takeovers of the last minute, and this one", {}, [20_000, 10_000, 0]],
    ["without counting a move that its node has asked for", { isPlanned: true }, [20_000, 10_000]],
  ])("comes from another node as being online since then, %s", (_, more, takeoverAgesMs) => {
    const { w, told, login } = node();
    const lamp = login(yielded(more), 1);
    const agent = { agentId: "lamp", loginNumber: 1, onlineForMs: 5_000 };
    expect(told.splice(0)).toEqual([["online", "ann", agent]]);
    lamp.take();
    const claim = w.hub.claimAgent("lamp", "B", 1, w.now);
    expect(claim).toMatchObject({ kind: "yielded", onlineForMs: 5_000, takeoverAgesMs });
    expect(lamp.codes()).toEqual(["REPLACED"]);
    expect(lamp.closed?.code).toBe(1008);
    expect(told).toEqual([["offline", "ann", "lamp", 1, true]]);
    expect(w.hub.claimAgent("lamp", "B", 2, w.now)).toEqual(FREE);
  });

  it("stays where it logged in last", () => {
    const { w, login } = node();
    const newer = login(FREE, 5);
    expect(w.hub.claimAgent("lamp", "B", 4, w.now)).toEqual({ kind: "superseded" });
    expect(w.hub.yieldAgent("lamp", "B", 4, w.now)).toEqual({ kind: "superseded" });
    const older = login(FREE, 4);
    expect(older.take()).toMatchObject([{ status: "authenticated" }, { code: "REPLACED" }]);
    expect(newer.closed).toBeNull();
    expect(w.hub.counters.takeovers).toBe(0);
    const again = login(FREE, 5);
    expect([again.closed, newer.closed?.code]).toEqual([null, 1008]);
    expect(w.hub.counters.takeovers).toBe(1);
  });

  it("is not given away more than a few times a minute, unless it is elsewhere already", () => {
    const { w, login } = node();
    const takeoverAgesMs = Array.from({ length: MAX_TAKEOVERS_PER_MINUTE - 1 }, () => 0);
    const lamp = login(yielded({ takeoverAgesMs }), 1);
    expect(w.hub.claimAgent("lamp", "B", 2, w.now)).toEqual({ kind: "loop" });
    expect(w.hub.claimAgent("lamp", "B", 0, w.now)).toEqual({ kind: "superseded" });
    w.advance(MINUTE_MS - 100);
    expect(w.hub.claimAgent("lamp", "B", 2, w.now)).toEqual({ kind: "loop" });
    expect(lamp.closed).toBeNull();
    expect(w.hub.yieldAgent("lamp", "B", 2, w.now)).toMatchObject({ kind: "yielded" });
    expect(lamp.closed?.code).toBe(1008);
  });

  it.each<[string, (w: World) => unknown]>([
    ["ends", (w) => w.hub.drain(60_000)],
    [
      "sends it away",
      (w) => {
        w.hub.rebalance(100);
        w.advance(100);
      },
    ],
  ])("is given away however often, and as planned, by a node that %s", (_, move) => {
    const { w, login } = node();
    const takeoverAgesMs = Array.from({ length: MAX_TAKEOVERS_PER_MINUTE }, () => 0);
    const lamp = login(yielded({ takeoverAgesMs }), 1);
    move(w);
    lamp.take();
    const claim = w.hub.claimAgent("lamp", "B", 2, w.now);
    expect(claim).toMatchObject({ kind: "yielded", isPlanned: true });
    expect(lamp.codes()).toEqual(["REPLACED"]);
    expect(w.hub.counters.takeovers).toBe(0);
  });

  it("that comes from another node, which has not answered, was online all the time", () => {
    const { w, told, login } = node();
    const client = w.client("ann");
    const there = { agentId: "lamp", loginNumber: 1, onlineForMs: 5_000 };
    w.hub.remoteAgents.online("ann", "B", [there], true, w.now);
    expect(client.take()).toMatchObject([{ agent_id: "lamp", online: true }]);
    const lamp = login(FREE, 2);
    expect(told).toEqual([["online", "ann", { ...there, loginNumber: 2 }]]);
    w.advance(6_000);
    expect(client.take()).toEqual([]);
    lamp.hangUp();
    expect(client.take()).toMatchObject([{ agent_id: "lamp", online: false }]);
    expect(w.hub.isOnlineAnywhere("ann", "lamp")).toBe(false);
  });

  it("stays online for its clients, whatever its earlier node says late", () => {
    const { w, login } = node();
    const client = w.client("ann");
    login(FREE, 2);
    client.take();
    w.hub.claimAgent("lamp", "B", 3, w.now);
    w.hub.remoteAgents.offline("ann", "lamp", 2, false, w.now);
    expect(client.take()).toEqual([]);
    const there = { agentId: "lamp", loginNumber: 3, onlineForMs: 0 };
    w.hub.remoteAgents.online("ann", "B", [there], false, w.now);
    w.advance(10_000);
    expect(client.take()).toEqual([]);
    w.hub.remoteAgents.offline("ann", "lamp", 3, false, w.now);
    expect(client.take()).toMatchObject([{ agent_id: "lamp", online: false }]);
  });

  it("is given away again a minute later", () => {
    const { w, login } = node();
    const takeoverAgesMs = Array.from({ length: MAX_TAKEOVERS_PER_MINUTE - 1 }, () => 0);
    login(yielded({ takeoverAgesMs }), 1);
    w.advance(MINUTE_MS);
    expect(w.hub.claimAgent("lamp", "B", 2, w.now)).toMatchObject({ takeoverAgesMs: [] });
  });

  it("is refused here while its links take it from each other there", () => {
    const { w, login } = node();
    const lamp = login({ kind: "loop" }, 1);
    const text = "Two devices take this agent over from each other; one of them must stop";
    expect(lamp.take()).toEqual([failed("TAKEOVER_LOOP", 60, text)]);
    expect(lamp.closed?.code).toBe(1008);
    expect(w.hub.counters).toMatchObject({ authSuccesses: 0, authFailures: 1 });
  });
});

it("remembers whose an agent is that was online, and asks the store no more", () => {
  const w = world();
  const client = w.client("ann");
  w.agent("lamp").hangUp();
  client.take();
  w.store.broken = true;
  client.say(envelope(packet("C"), { agent_id: "lamp" }));
  expect(client.codes()).toEqual(["AGENT_OFFLINE"]);
});

describe("a client's login", () => {
  /** An auth whose look-up answers `change` of what the store says. */
  const loginWith = (w: World, change: object): VirtualPeer => {
    w.slowStore = true;
    const peer = w.connect();
    peer.say(good);
    w.lookUps.splice(0);
    const result = w.store.authenticate({
      apiToken: "acct:ann",
      clientType: "client",
      address: "192.0.2.1",
      nowMs: w.now,
    });
    w.hub.authenticated(peer.connection, { ...result, ...change } as AuthResult, w.now);
    w.slowStore = false;
    return peer;
  };

  it("fails if its session token has expired meanwhile, or has no requests left", () => {
    const w = world();
    expect(loginWith(w, { expiresAtMs: w.now }).take()).toEqual([
      failed("SESSION_EXPIRED", 0, "Session token expired"),
    ]);
    expect(loginWith(w, { expiresAtMs: w.now + 1 }).take()).toMatchObject([{ expires_in: 1 }]);
    expect(loginWith(w, { requestsUsed: 10_000, sessionHash: "#used" }).take()).toEqual([
      failed("LIMIT_EXCEEDED", 0, "Session token used up"),
    ]);
  });

  it("with unknown session tokens must wait after 60 of them from its address, uncounted", () => {
    const w = world();
    const unknown = { ok: false, isUnknownSession: true, code: "INVALID_TOKEN", error: "Unknown" };
    for (let n = 0; n < 60; n++) {
      const peer = loginWith(w, unknown);
      expect(peer.take()).toEqual([failed("INVALID_TOKEN", 0, "Unknown")]);
      expect(peer.closed).toBeNull();
    }
    const peer = loginWith(w, unknown);
    const text = "Too many unknown session tokens from this address";
    expect(peer.take()).toEqual([failed("RATE_LIMITED", 38, text)]);
    expect(peer.closed?.code).toBe(1008);
    expect(w.lockout.failures).toBe(0);
  });

  it("tells the other nodes of a user's first client only", () => {
    const told: string[] = [];
    const w = new World({}, { ...ALONE, clientsOnline: (user) => told.push(user) });
    w.user("ann");
    w.user("bob");
    const first = w.client("ann");
    w.client("ann");
    w.client("bob");
    expect(told).toEqual(["ann", "bob"]);
    first.hangUp();
    w.client("ann");
    expect(told).toEqual(["ann", "bob"]);
  });

  it("says which session token it renews only if it does", () => {
    const w = world();
    expect(loginWith(w, { renews: "#old" }).take()).toMatchObject([{ renewed: true }]);
    expect(loginWith(w, {}).take()[0]).not.toHaveProperty("renewed");
  });
});

describe("revocation", () => {
  it("ends at once what it concerns: agent, clients, user, session", () => {
    const w = world();
    const [lamp, pump, other] = [w.agent("lamp"), w.agent("pump-7"), w.agent("bobs")];
    const [one, two] = [w.client("ann"), w.client("ann")];
    w.hub.endAgent("lamp", "REVOKED", w.now);
    expect(lamp.codes()).toEqual(["REVOKED"]);
    expect(lamp.closed?.code).toBe(1008);
    w.hub.endSession(hashOf(one.session), "REVOKED", w.now);
    expect(one.closed?.code).toBe(1008);
    expect(two.closed).toBeNull();
    w.hub.endClients("ann", "REVOKED", w.now);
    expect(two.closed?.code).toBe(1008);
    expect(pump.closed).toBeNull();
    w.hub.endUser("ann", "REVOKED", w.now);
    expect(pump.closed?.code).toBe(1008);
    expect(other.closed).toBeNull();
  });

  it.each([
    ["its agent", authOf("lamp"), (w: World) => w.hub.endAgent("lamp", "REVOKED", w.now)],
    ["its clients", good, (w: World) => w.hub.endClients("ann", "REVOKED", w.now)],
    ["its user", good, (w: World) => w.hub.endUser("ann", "REVOKED", w.now)],
  ])("refuses an auth that was looked up before %s was revoked", (_, auth, revoke) => {
    const w = world();
    w.slowStore = true;
    const peer = w.connect();
    peer.say(auth);
    revoke(w);
    w.answer();
    expect(peer.take()).toEqual([failed("INVALID_TOKEN", 0, "Invalid token")]);
    expect(w.lockout.failures).toBe(0);
  });
});

describe("what an agent reports about itself", () => {
  it("is stored at login and stays when it leaves", () => {
    const w = world();
    const peer = w.connect();
    peer.say({ ...authOf("pump-7"), runtime: "node 26.10.0", firmware_version: "1.2.3" });
    peer.hangUp();
    expect(w.store.seen.map(({ report, online }) => [online, report])).toEqual([
      [true, { runtime: "node 26.10.0", firmwareVersion: "1.2.3" }],
      [false, null],
    ]);
  });

  it("is null if it reports nothing", () => {
    const w = world();
    w.agent("pump-7");
    expect(w.store.seen[0]?.report).toEqual({ runtime: null, firmwareVersion: null });
  });

  it.each([1, null, "", "x".repeat(65), "1.0\u0000", "\u00fc"])(
    "%j is not a version, and is refused with the reason",
    (firmware_version) => {
      const w = world();
      const peer = w.connect();
      peer.say({ ...authOf("pump-7"), firmware_version });
      expect(peer.take()).toMatchObject([{ status: "failed", code: "BAD_MESSAGE" }]);
      peer.say(authOf("pump-7"));
      expect(peer.take()).toMatchObject([{ status: "authenticated" }]);
    },
  );
});

describe("a user's client connections", () => {
  it("have a quota: one more is refused and closed; agents and other users have their own", () => {
    const w = new World({ clientsPerUser: 2 });
    w.user("ann", "lamp");
    w.user("bob");
    const first = w.client("ann");
    w.client("ann");
    const third = w.connect();
    third.say(good);
    const error = "This account has 2 client connections already";
    expect(third.take()).toEqual([failed("QUOTA_EXCEEDED", 60, error)]);
    expect(third.closed?.code).toBe(1008);
    expect(w.agent("lamp").closed).toBeNull();
    expect(w.client("bob").closed).toBeNull();
    first.hangUp();
    expect(w.client("ann").closed).toBeNull();
  });

  it("have their own, and those with the account's access keys another one together", () => {
    const w = new World({ clientsPerUser: 2 });
    w.user("ann");
    for (const id of ["ci", "guest"]) {
      w.store.keys.set(id, { userId: "ann", site: null, expiresAtMs: null });
    }
    w.clientWithKey("ci");
    w.clientWithKey("guest");
    const third = w.connect();
    third.say({ type: "auth", client_type: "client", api_token: "key:ci" });
    const error = "The access keys of this account have 2 client connections already";
    expect(third.take()).toEqual([failed("QUOTA_EXCEEDED", 60, error)]);
    for (let i = 0; i < 2; i++) expect(w.client("ann").closed).toBeNull();
  });
});
