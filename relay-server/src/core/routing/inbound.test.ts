import type { PacketHead } from "@blindrelay/protocol/wire";
import { describe, expect, it } from "vitest";
import { ALONE } from "../bus.ts";
import type { Content } from "../connections/connection.ts";
import { HELD_BYTES_PER_USER, type HubLimits } from "../limits/limits.ts";
import {
  authOf,
  envelope,
  type Fields,
  hashOf,
  packet,
  type VirtualPeer,
  World,
} from "../testing/test-hub.ts";

const world = (limits: Partial<HubLimits> = {}) => {
  const w = new World(limits);
  w.user("ann", "lamp");
  return { w, agent: w.agent("lamp"), client: w.client("ann") };
};

const toLamp = (more: Fields = {}): Fields => envelope("hello", { agent_id: "lamp", ...more });
const tooLarge = "x".repeat(65_537);

describe("messages that wait", () => {
  const LARGE = "x".repeat(60_000);
  const EACH = 4; // this many of them fit into one connection

  it("have room for each user together; beyond it they get RATE_LIMITED, and others are not affected", () => {
    const { w, agent } = world();
    w.user("bob", "bell");
    const bell = w.agent("bell");
    const links = HELD_BYTES_PER_USER / (EACH * 60_000);
    const clients = Array.from({ length: Math.ceil(links) + 10 }, () => w.client("ann"));
    const bob = w.client("bob");
    w.slowStore = true;
    for (const client of clients) {
      client.say(envelope("?", { agent_id: "unknown" })); // waits for a look-up
      for (let i = 0; i < EACH; i++) client.say(envelope(LARGE, { agent_id: "lamp" }));
    }
    bob.say(envelope("?", { agent_id: "unknown" }));
    bob.say(envelope(LARGE, { agent_id: "bell" }));
    const refused = clients.flatMap((client) => client.codes());
    expect(new Set(refused)).toEqual(new Set(["RATE_LIMITED"]));
    const kept = EACH * clients.length - refused.length;
    expect(kept * 60_000).toBeLessThanOrEqual(HELD_BYTES_PER_USER);
    expect(kept * 60_000).toBeGreaterThan(0.9 * HELD_BYTES_PER_USER);
    clients.pop()?.hangUp();
    w.slowStore = false;
    w.settle();
    expect(agent.take()).toHaveLength(kept);
    expect(bell.take()).toHaveLength(1);
    expect(clients.some(({ paused }) => paused)).toBe(false);
    // The room of those that left, or were served, is free again.
    w.slowStore = true;
    for (const client of clients.slice(0, 40)) {
      client.take();
      client.say(envelope("?", { agent_id: "another" }));
      for (let i = 0; i < EACH; i++) client.say(envelope(LARGE, { agent_id: "lamp" }));
      expect(client.take()).toEqual([]);
    }
  });

  it("may be one that is as long as any that the relay accepts, beside no others", () => {
    const { w, client } = world({ maxMessageBytes: 1_048_576 });
    w.slowStore = true;
    client.say(envelope("x".repeat(500_000), { agent_id: "unknown" }));
    client.say(toLamp({ payload: "x".repeat(500_000) }));
    w.slowStore = false;
    w.settle();
    expect(client.codes()).toEqual(["RATE_LIMITED", "AGENT_NOT_FOUND"]);
  });

  it("of connections that leave meanwhile make room again", () => {
    const { w } = world();
    w.slowStore = true;
    for (let i = 0; i < 2 * (HELD_BYTES_PER_USER / (EACH * 60_000)); i++) {
      const stranger = w.connect(`192.0.2.${i}`);
      stranger.say(authOf("lamp"));
      for (let n = 0; n < EACH; n++) stranger.say(toLamp({ payload: LARGE }));
      expect(stranger.take()).toEqual([]);
      stranger.hangUp();
    }
  });

  it.each([
    ["the owner of an agent", false, false],
    ["an owner whom the store cannot tell", false, true],
    ["requests that are reserved", true, false],
  ])("for %s take the same room; beyond it they get UNAVAILABLE", (_, reserves, isBroken) => {
    const w = new World({}, ALONE, reserves);
    w.user("ann");
    const links = Math.ceil(HELD_BYTES_PER_USER / LARGE.length) + 10;
    const [first, second] = [0, 1].map(() => Array.from({ length: links }, () => w.client("ann")));
    const small = w.client("ann");
    w.slowStore = true;
    w.store.broken = isBroken;
    const kept = (clients: readonly VirtualPeer[] = []): number => {
      for (const client of clients) client.say(envelope(LARGE, { agent_id: "unknown" }));
      const refused = clients.filter((client) => client.codes().includes("UNAVAILABLE"));
      return (clients.length - refused.length) * LARGE.length;
    };
    const most = kept(first);
    expect(most).toBeLessThanOrEqual(HELD_BYTES_PER_USER);
    expect(most).toBeGreaterThan(0.9 * HELD_BYTES_PER_USER);
    small.say(envelope("?", { agent_id: "unknown" })); // each link may always hold as little
    expect(small.take()).toEqual([]);
    // The room of those that leave, or are served, is free again.
    for (const client of first?.slice(links / 2) ?? []) client.hangUp();
    for (const hash of w.reservations.splice(0)) w.hub.reserved(hash, 5, w.now);
    w.slowStore = false;
    w.settle();
    w.slowStore = true;
    expect(kept(second)).toBe(most);
  });

  it("of unauthenticated connections do not block a newcomer: the login waits for its turn", () => {
    const { w } = world();
    let turns: (() => void)[] = [];
    w.turn = (happen) => turns.push(happen);
    const strangers = Array.from({ length: 2 * (HELD_BYTES_PER_USER / (EACH * 60_000)) }, () =>
      w.connect(),
    );
    for (const stranger of strangers) {
      for (let n = 0; n < EACH; n++) stranger.say(toLamp({ payload: LARGE }));
    }
    const last = w.connect();
    while (!last.codes().includes("RATE_LIMITED")) last.say({ type: "ping" }); // no room left
    const newcomer = w.connect();
    newcomer.say(authOf("lamp"));
    while (turns.length > 0) {
      const due = turns;
      turns = [];
      for (const happen of due) happen();
      w.settle();
    }
    expect(newcomer.take()).toMatchObject([{ type: "auth_response", status: "authenticated" }]);
  });
});

describe("bad messages", () => {
  it.each<[string, string, (peer: VirtualPeer) => void]>([
    ["not JSON", "BAD_MESSAGE", (peer) => peer.say("{nope")],
    ["JSON that is no object", "BAD_MESSAGE", (peer) => peer.say("[1]")],
    ["an object that is neither typed nor a packet", "BAD_MESSAGE", (peer) => peer.say({ v: "1" })],
    ["a type that is no string", "BAD_MESSAGE", (peer) => peer.say({ type: 7 })],
    ["deep nesting", "BAD_MESSAGE", (peer) => peer.say("[".repeat(65_000))],
    ["balanced deep nesting", "BAD_MESSAGE", (p) => p.say("[".repeat(30_000) + "]".repeat(30_000))],
    ["binary", "BAD_MESSAGE", (peer) => peer.sayBinary(new Uint8Array([1, 2]))],
    ["65,537 bytes", "TOO_LARGE", (peer) => peer.say(tooLarge)],
    ["65,537 binary bytes", "TOO_LARGE", (peer) => peer.sayBinary(new Uint8Array(65_537))],
  ])("%s: %s, the third in a row then 1008", (_, code, send) => {
    const { w, agent, client } = world();
    send(client);
    send(client);
    expect(client.codes()).toEqual([code, code]);
    expect(client.closed).toBeNull();
    send(client);
    expect(client.codes()).toEqual([code]);
    expect(client.closed).toEqual({ code: 1008, reason: "too many unreadable messages" });
    expect(agent.closed).toBeNull();
    expect(w.client("ann").closed).toBeNull();
  });

  it("65,536 bytes are allowed", () => {
    const { agent, client } = world();
    const empty = JSON.stringify(toLamp({ request_id: "r" })).length - "hello".length;
    const full = envelope("x".repeat(65_536 - empty), { agent_id: "lamp", request_id: "r" });
    expect(client.say(full).length).toBe(65_536);
    expect(agent.take()).toHaveLength(1);
  });

  it.each<[string, Fields, boolean]>([
    ["a pong", { type: "pong" }, true],
    ["an envelope", toLamp(), true],
    ["an envelope with wrong types", { type: "relay", payload: 1 }, true],
    ["a packet", packet("C.A"), true],
    ["a message of unknown type", { type: "dance" }, false],
  ])("a row of unreadable messages with %s in between", (_, message, ends) => {
    const { client } = world();
    client.say("bad");
    client.say("bad");
    client.say(message);
    client.say("bad");
    expect(client.closed === null).toBe(ends);
  });

  it("apply before auth, too", () => {
    const { w } = world();
    const peer = w.connect();
    for (let i = 0; i < 3; i++) peer.say("bad");
    expect(peer.codes()).toEqual(["BAD_MESSAGE", "BAD_MESSAGE", "BAD_MESSAGE"]);
    expect(peer.closed?.code).toBe(1008);
  });

  it.each<[string, Fields]>([
    ["payload missing", { type: "relay", agent_id: "lamp" }],
    ["payload a number", { type: "relay", agent_id: "lamp", payload: 7 }],
    ["payload null", { type: "relay", agent_id: "lamp", payload: null }],
    ["payload an array", { type: "relay", agent_id: "lamp", payload: [] }],
    ["agent_id missing", envelope("x")],
    ["agent_id a number", envelope("x", { agent_id: 7 })],
    ["signature a number", toLamp({ signature: 7 })],
    ["request_id a number", toLamp({ request_id: 7 })],
    ["request_id empty", toLamp({ request_id: "" })],
    ["request_id of 65 characters", toLamp({ request_id: "r".repeat(65) })],
  ])("an envelope with %s: BAD_MESSAGE, and the connection stays however often", (_, message) => {
    const { agent, client } = world();
    for (let i = 0; i < 4; i++) client.say(message);
    expect(client.codes()).toEqual(Array(4).fill("BAD_MESSAGE"));
    expect(client.closed).toBeNull();
    expect(agent.take()).toEqual([]);
  });

  it("an envelope without agent_id is told what it lacks", () => {
    const { client } = world();
    client.say(envelope("x"));
    expect(client.take()).toMatchObject([{ error: "agent_id is missing" }]);
  });

  it("a property of the prototype is not a field: own properties only", () => {
    const { client } = world();
    client.say('{"__proto__":{"type":"ping"}}');
    expect(client.codes()).toEqual(["BAD_MESSAGE"]);
  });

  it("of duplicate names the last value counts", () => {
    const { agent, client } = world();
    client.say('{"type":"dance","type":"ping"}');
    expect(client.take()).toEqual([{ type: "pong" }]);
    client.say('{"type":"relay","payload":"x","agent_id":"nobody","agent_id":"lamp"}');
    expect(agent.take()).toHaveLength(1);
  });

  it("unknown types: UNKNOWN_TYPE, and the connection stays however often", () => {
    const { client } = world();
    for (const type of ["dance", "auth_response", "error", ""]) client.say({ type });
    expect(client.codes()).toEqual(Array(4).fill("UNKNOWN_TYPE"));
    expect(client.closed).toBeNull();
  });

  it("unknown fields are ignored and forwarded", () => {
    const { agent, client } = world();
    const sent = client.say(toLamp({ colour: "red" }));
    expect(agent.takeFrames()[0]).toBe(sent);
  });

  it("a ping is answered with a pong", () => {
    const { client } = world();
    client.say({ type: "ping" });
    expect(client.take()).toEqual([{ type: "pong" }]);
  });
});

describe("a message", () => {
  it("may be read from its bytes when its turn comes, or come as the packet that it is", () => {
    const { w, agent, client } = world();
    client.say(envelope(packet("C"), { agent_id: "lamp" }));
    const receive = (content: Content) => {
      w.hub.receive(client.connection, content, new Uint8Array(2), w.now);
      return client.take();
    };
    expect(receive(({ length }) => `{"type":"${length === 2 ? "ping" : ""}"}`)).toEqual([
      { type: "pong" },
    ]);
    expect(receive(() => null)).toMatchObject([{ code: "BAD_MESSAGE" }]);
    const head: PacketHead = { kind: "packet", sid: "D.A", first: "D", requestId: null };
    expect(receive(head)).toMatchObject([{ code: "UNKNOWN_SESSION", sid: "D.A" }]);
    expect(agent.take()).toHaveLength(1);
  });

  it("costs its user a turn unless it answers a ping, in the usual form", () => {
    const { w, client } = world();
    const [answers, asks, writes] = [w.client("ann"), w.client("ann"), w.client("ann")];
    for (const peer of [answers, asks, writes]) peer.silent = true;
    w.advance(30_000);
    w.turn = () => undefined;
    while (client.connection.held === null) client.say(packet("C.A"));
    answers.say({ type: "pong" });
    asks.say({ type: "ping" });
    writes.say('{"type": "pong"}');
    const unanswered = () =>
      [answers, asks, writes].map(({ connection }) => connection.pingsUnanswered);
    expect([unanswered(), asks.take()]).toEqual([[0, 1, 1], []]);
    answers.say({ type: "pong" }); // which nobody asked for
    expect(answers.connection.held).toHaveLength(1);
  });
});

describe("requests", () => {
  const limits = { maxRequests: 3 };

  it("the one over the limit gets LIMIT_EXCEEDED, then 1008; it is not delivered", () => {
    const { w, agent, client } = world(limits);
    for (let i = 0; i < 3; i++) client.say(toLamp());
    expect(client.take()).toEqual([]);
    client.say(toLamp({ request_id: "last" }));
    const error = expect.stringContaining("Session request limit"); // the specified text
    expect(client.take()).toMatchObject([{ code: "LIMIT_EXCEEDED", error, request_id: "last" }]);
    expect(client.closed?.code).toBe(1008);
    expect(agent.take()).toHaveLength(3);
    expect(w.dropped()).toEqual({ LIMIT_EXCEEDED: 1 });
  });

  it("is 10,000 by default", () => {
    const { w, agent, client } = world();
    for (let i = 0; i < 10_000; i++) {
      if (i % 1000 === 0) w.advance(1_000);
      client.say(toLamp());
    }
    expect(client.closed).toBeNull();
    expect(agent.take()).toHaveLength(10_000);
    client.say(toLamp());
    expect(client.codes()).toEqual(["LIMIT_EXCEEDED"]);
  });

  it("are counted per session token, over concurrent and successive connections", () => {
    const { w, client } = world(limits);
    client.say(toLamp());
    const second = w.clientAgain(client.session);
    second.say(toLamp());
    client.hangUp();
    second.hangUp();
    w.advance(120_000);
    const third = w.clientAgain(client.session);
    third.say(toLamp());
    expect(third.take()).toEqual([]);
    third.say(toLamp());
    expect(third.codes()).toEqual(["LIMIT_EXCEEDED"]);
  });

  it.each(["replaced", "joined"])(
    "are counted once although the first connection was %s",
    (how) => {
      const { w, client } = world(limits);
      if (how === "replaced") client.hangUp();
      const second = w.clientAgain(client.session);
      if (how === "joined") client.hangUp();
      w.advance(120_000);
      second.say(toLamp());
      second.say(toLamp());
      const third = w.clientAgain(client.session);
      third.say(toLamp());
      third.say(toLamp());
      expect(third.codes()).toEqual(["LIMIT_EXCEEDED"]);
    },
  );

  it("a token with none left is refused: LIMIT_EXCEEDED, retry_after 0, not counted", () => {
    const { w, client } = world(limits);
    for (let i = 0; i < 3; i++) client.say(toLamp());
    const peer = w.connect();
    peer.say({ type: "auth", session_token: client.session, client_type: "client" });
    expect(peer.take()).toEqual([
      {
        type: "auth_response",
        status: "failed",
        error: "Session token used up",
        code: "LIMIT_EXCEEDED",
        retry_after: 0,
      },
    ]);
    expect(w.lockout.failures).toBe(0);
  });

  it("count when well-formed, delivered or not: offline, not found, unknown session, in use", () => {
    const { w, client } = world(limits);
    w.user("ann", "away");
    client.say(envelope("x", { agent_id: "away" }));
    client.say(envelope("x", { agent_id: "nobody" }));
    client.say(packet("unbound"));
    expect(client.codes()).toEqual(["AGENT_OFFLINE", "AGENT_NOT_FOUND", "UNKNOWN_SESSION"]);
    client.say(toLamp());
    expect(client.codes()).toEqual(["LIMIT_EXCEEDED"]);
  });

  it("do not count when refused: BAD_MESSAGE, TOO_LARGE, RATE_LIMITED, UNKNOWN_TYPE", () => {
    const { w, client } = world({ maxRequests: 3, rateBurst: 10, ratePerSecond: 1 });
    client.say({ type: "relay", payload: 1 });
    client.say(tooLarge);
    client.say({ type: "dance" });
    for (let i = 0; i < 8; i++) client.say({ type: "pong" });
    client.say(toLamp());
    expect(client.codes().at(-1)).toBe("RATE_LIMITED");
    w.advance(5_000);
    for (let i = 0; i < 3; i++) client.say(toLamp());
    expect(client.take()).toEqual([]);
  });

  it("of agents are not counted", () => {
    const { agent, client } = world(limits);
    client.say(toLamp({ request_id: "r" }));
    for (let i = 0; i < 10; i++) agent.say(envelope("answer", { request_id: "r" }));
    expect(client.take()).toHaveLength(10);
    expect(agent.closed).toBeNull();
  });

  it("are saved to the store every few seconds and when the last connection ends", () => {
    const { w, client } = world();
    for (let i = 0; i < 5; i++) client.say(toLamp());
    expect(w.saved).toEqual([]);
    w.advance(5_100);
    expect(w.saved).toEqual([{ sessionHash: hashOf(client.session), used: 5 }]);
    client.say(toLamp());
    client.hangUp();
    expect(w.saved.at(-1)).toEqual({ sessionHash: hashOf(client.session), used: 6 });
  });
});

describe("requests that are reserved in the store, on a node of a cluster", () => {
  const node = () => {
    const w = new World({}, ALONE, true);
    w.user("ann", "lamp");
    const lamp = w.agent("lamp");
    /** The store's answer: so many, or null if it cannot tell. */
    const answer = (requests: number | null): void => {
      const [sessionHash] = w.reservations.splice(0) as [string];
      w.hub.reserved(sessionHash, requests, w.now);
      w.settle();
    };
    return { w, lamp, answer };
  };
  const numbered = (id: number): Fields => envelope("x", { agent_id: "lamp", request_id: `${id}` });
  const ids = (lamp: VirtualPeer) => lamp.take().map(({ request_id }) => Number(request_id));

  it("are asked for once, and what waits for them goes on in order", () => {
    const { w, lamp, answer } = node();
    const client = w.client("ann");
    const again = w.clientAgain(client.session);
    for (const id of [1, 2, 3]) client.say(numbered(id));
    again.say(numbered(4));
    expect([w.reservations, lamp.take()]).toEqual([[hashOf(client.session)], []]);
    answer(10);
    expect(ids(lamp)).toEqual([1, 2, 3, 4]);
    client.say(numbered(5));
    expect(ids(lamp)).toEqual([5]);
    expect(w.reservations).toEqual([]);
  });

  it("are asked for again when they do not suffice for what waits", () => {
    const { w, lamp, answer } = node();
    const client = w.client("ann");
    for (const id of [1, 2, 3]) client.say(numbered(id));
    answer(2);
    expect(ids(lamp)).toEqual([1, 2]);
    client.say(numbered(4));
    answer(2);
    expect(ids(lamp)).toEqual([3, 4]);
  });

  it("are refused for a while if the store cannot tell", () => {
    const { w, lamp, answer } = node();
    const client = w.client("ann");
    for (const id of [1, 2]) client.say(numbered(id));
    answer(null);
    expect(client.take()).toMatchObject([
      { code: "UNAVAILABLE", request_id: "1" },
      { code: "UNAVAILABLE", request_id: "2" },
    ]);
    w.advance(1_000);
    client.say(numbered(3));
    answer(1);
    expect([ids(lamp), client.closed]).toEqual([[3], null]);
  });

  it("end the connection if there are none left, as the store says twice", () => {
    const { w, lamp, answer } = node();
    const client = w.client("ann");
    for (const id of [1, 2]) client.say(numbered(id)); // the second says nothing more
    answer(0);
    expect(client.take()).toEqual([]);
    w.advance(3_000);
    answer(0);
    expect(client.take()).toMatchObject([{ code: "LIMIT_EXCEEDED", request_id: "1" }]);
    expect([client.closed?.code, lamp.take()]).toEqual([1008, []]);
  });

  it("come too late for a client that has left, and are given back", () => {
    const { w, lamp, answer } = node();
    const client = w.client("ann");
    client.say(numbered(1));
    client.hangUp();
    expect(w.dropped()).toEqual({ SENDER_LEFT: 1 });
    answer(5);
    w.advance(2_000);
    expect(lamp.take()).toEqual([]);
    expect(w.saved.map(({ used }) => used)).toEqual([0]);
  });

  it("let what waits behind them wait for the owner of an agent, too", () => {
    const { w, lamp, answer } = node();
    const client = w.client("ann");
    w.slowStore = true;
    client.say(envelope("x", { agent_id: "elsewhere" }));
    client.say(numbered(2));
    answer(5);
    expect(lamp.take()).toEqual([]);
    w.slowStore = false;
    w.settle();
    expect([client.codes(), ids(lamp)]).toEqual([["AGENT_NOT_FOUND"], [2]]);
  });
});

describe("a client session older than 24 h", () => {
  it("gets SESSION_EXPIRED, then 1008, whether it sends or not", () => {
    const { w, client } = world();
    w.now += 86_390_000;
    w.advance(9_000);
    const same = w.clientAgain(client.session);
    expect([client.closed, same.closed]).toEqual([null, null]);
    w.advance(1_000);
    for (const peer of [client, same]) {
      expect(peer.codes()).toEqual(["SESSION_EXPIRED"]);
      expect(peer.closed?.code).toBe(1008);
    }
  });

  it("is refused in time even between two ticks, with its sid", () => {
    const { w, client } = world();
    w.now += 86_400_000;
    client.say(envelope(packet("C.A"), { agent_id: "lamp" }));
    expect(client.take()).toMatchObject([{ code: "SESSION_EXPIRED", sid: "C.A" }]);
    expect(client.closed?.code).toBe(1008);
    expect(w.dropped()).toEqual({ SESSION_EXPIRED: 1 });
  });

  it("an agent's connection stays open", () => {
    const { w, agent } = world();
    w.now += 86_390_000;
    w.advance(110_000);
    expect(agent.closed).toBeNull();
  });
});

describe("rate", () => {
  it("lets a burst of 2,000 and then 1,000 a second through, the rest gets RATE_LIMITED", () => {
    const { w, agent, client } = world();
    const say = (): unknown =>
      client.say(envelope(packet("C"), { agent_id: "lamp", request_id: "r" }));
    for (let i = 0; i < 2_000; i++) say();
    expect(client.take()).toEqual([]);
    say();
    const error = expect.any(String);
    expect(client.take()).toEqual([
      { type: "error", error, code: "RATE_LIMITED", sid: "C", request_id: "r" },
    ]);
    w.advance(1_000);
    for (let i = 0; i < 1_000; i++) say();
    expect(client.take()).toEqual([]);
    say();
    expect(client.codes()).toEqual(["RATE_LIMITED"]);
    expect(agent.take()).toHaveLength(3_000);
    expect(w.hub.counters.received).toBe(3_002);
    expect(client.closed).toBeNull();
  });

  it("applies to agents too, each connection separately", () => {
    const { w, agent, client } = world({ rateBurst: 5, ratePerSecond: 1 });
    w.advance(10_000);
    for (let i = 0; i < 6; i++) agent.say({ type: "ping" });
    expect(agent.take().at(-1)).toMatchObject({ code: "RATE_LIMITED" });
    client.say({ type: "ping" });
    expect(client.take()).toEqual([{ type: "pong" }]);
  });

  it("closes after 10,000 refusals; the count decays by 100 a second", () => {
    const { w, agent, client } = world({ rateBurst: 10, ratePerSecond: 1 });
    const refuse = (count: number): void => {
      for (let i = 0; i < count; i++) client.say({ type: "ping" });
      client.take();
    };
    for (let i = 0; i < 10; i++) client.say({ type: "pong" });
    refuse(10_000);
    expect(client.closed).toBeNull();
    w.advance(10_000);
    for (let i = 0; i < 10; i++) client.say({ type: "pong" });
    refuse(1_000);
    expect(client.closed).toBeNull();
    client.say({ type: "ping" });
    expect(client.codes()).toEqual(["RATE_LIMITED"]);
    expect(client.closed).toEqual({ code: 1008, reason: "RATE_LIMITED" });
    expect(w.hub.counters.closedForRate).toBe(1);
    expect(agent.closed).toBeNull();
  });
});

describe("a message in fragments", () => {
  it("ends its connection 30 s after its first fragment, whatever came before or after", () => {
    const { w, agent, client } = world();
    const slow = w.client("ann");
    w.hub.fragmented(client.connection, true, w.now);
    w.hub.fragmented(slow.connection, true, w.now);
    w.advance(15_000);
    w.hub.fragmented(client.connection, false, w.now);
    w.hub.fragmented(client.connection, true, w.now);
    w.advance(15_000);
    expect(slow.take()).toMatchObject([{ code: "BAD_MESSAGE" }]);
    expect(slow.closed?.code).toBe(1008);
    expect(client.closed).toBeNull();
    w.advance(15_000);
    expect(client.closed?.code).toBe(1008);
    expect(agent.closed).toBeNull();
  });

  it("ends nothing if it is completed in time", () => {
    const { w, client } = world();
    w.hub.fragmented(client.connection, true, w.now);
    w.advance(29_000);
    w.hub.fragmented(client.connection, false, w.now);
    w.advance(60_000);
    expect(client.closed).toBeNull();
  });

  it("gets the error if it breaks a rule, and 1013 if the relay has no room for it", () => {
    const { w, client } = world();
    const other = w.connect();
    w.hub.brokeFraming(client.connection, "too many", w.now);
    w.hub.brokeFraming(client.connection, "too many", w.now);
    w.hub.brokeFraming(other.connection, null, w.now);
    expect(client.take()).toMatchObject([{ code: "BAD_MESSAGE", error: "too many" }]);
    expect(client.closed).toEqual({ code: 1008, reason: "too many" });
    expect(other.codes()).toEqual(["UNAVAILABLE"]);
    expect(other.closed).toEqual({ code: 1013, reason: "no room" });
    expect(w.hub.counters.closedForFraming).toBe(2);
  });
});
