/**
 * What happens to connections over time and when they are full: pings, presence, slow receivers,
 * shutdown.
 */
import { LOCKOUT_S } from "@blindrelay/protocol";
import { describe, expect, it } from "vitest";
import { NEWS_KEPT, NEWS_PER_TURN, TURN_COST } from "../limits/limits.ts";
import { authOf, envelope, packet, World } from "../testing/test-hub.ts";

const world = () => {
  const w = new World();
  w.user("ann", "lamp", "pump");
  w.user("bob", "bobs");
  return w;
};

describe("pings", () => {
  // Before a proxy ends what is idle for 60 s: websockets/ws#2283
  it("come every 30 s, the first within 30 s", () => {
    const w = world();
    const agent = w.agent("lamp");
    w.advance(30_100);
    expect(agent.pings).toBe(1);
    w.advance(300_000);
    expect(agent.pings).toBe(11);
    expect(agent.closed).toBeNull();
  });

  it("do not come before auth", () => {
    const w = world();
    const peer = w.connect();
    w.advance(29_900);
    expect(peer.pings).toBe(0);
  });

  it("unanswered twice in a row: 1008 at the tick after the second, 60 s after the first", () => {
    const w = world();
    const agent = w.agent("lamp");
    agent.silent = true;
    while (agent.pings === 0) w.advance(100);
    w.advance(59_900);
    expect(agent.pings).toBe(2);
    expect(agent.closed).toBeNull();
    w.advance(200);
    expect(agent.closed).toEqual({ code: 1008, reason: "missed pings" });
    expect([agent.pings, w.hub.counters.closedForMissedPings]).toEqual([2, 1]);
  });

  it("leave time for an answer after a pause of the whole process", () => {
    const w = world();
    const agent = w.agent("lamp");
    agent.silent = true;
    w.now += 600_000;
    w.advance(10_000);
    expect(agent.pings).toBe(1);
    w.advance(6_000);
    expect([agent.pings, agent.closed]).toEqual([2, null]);
  });

  it("are answered by a pong message", () => {
    const w = world();
    const agent = w.agent("lamp");
    agent.silent = true;
    while (agent.pings < 2) w.advance(100);
    agent.say({ type: "pong" });
    w.advance(59_900);
    expect(agent.closed).toBeNull();
    w.advance(30_200);
    expect(agent.closed?.code).toBe(1008);
  });

  it("are answered by a pong message even over the rate limit", () => {
    const w = world();
    const agent = w.agent("lamp");
    agent.silent = true;
    while (agent.pings < 2) w.advance(100);
    for (let i = 0; i < 2000; i++) agent.say(packet("C.A"));
    agent.take();
    agent.say({ type: "pong" });
    expect(agent.codes()).toEqual(["RATE_LIMITED"]);
    w.advance(59_900);
    expect(agent.closed).toBeNull();
  });

  it("do not end a peer whose pong may be waiting behind a look-up", () => {
    const w = world();
    const client = w.client("ann");
    client.silent = true;
    while (client.pings < 2) w.advance(100);
    w.slowStore = true;
    client.say(envelope("x", { agent_id: "elsewhere" }));
    client.say({ type: "pong" });
    w.advance(30_100);
    expect(client.closed).toBeNull();
    w.slowStore = false;
    w.settle();
    w.advance(30_000);
    expect(client.closed).toBeNull();
  });

  it("are not counted against a client whose pongs wait behind a look-up", () => {
    const w = world();
    const client = w.client("ann");
    client.silent = true;
    while (client.pings < 1) w.advance(100);
    w.slowStore = true;
    client.say(envelope("x", { agent_id: "elsewhere" }));
    w.advance(89_900); // two more pings, and just before the next the look-up is answered
    expect([client.pings, client.closed]).toEqual([3, null]);
    w.slowStore = false;
    w.settle();
    w.advance(200);
    expect([client.pings, client.closed]).toEqual([4, null]);
    w.advance(30_000);
    expect(client.closed?.code).toBe(1008);
  });

  it.each([
    ["a packet", JSON.stringify(packet("C.A"))],
    ["a ping", '{"type":"ping"}'],
    ["an unknown message", '{"type":"something"}'],
    ["an unreadable message", "bad"],
  ])("are not answered by %s", (_, text) => {
    const w = world();
    const agent = w.agent("lamp");
    agent.silent = true;
    while (agent.pings < 2) w.advance(100);
    agent.say(text);
    w.advance(30_100);
    expect(agent.closed?.code).toBe(1008);
  });

  it("of connections accepted together are spread over the second half of the interval", () => {
    const w = world();
    const crowd = Array.from({ length: 1500 }, (_, i) => {
      w.user("ann", `a${i}`);
      return w.agent(`a${i}`);
    });
    const pings = (): number => crowd.reduce((sum, agent) => sum + agent.pings, 0);
    w.advance(14_900);
    expect(pings()).toBe(0);
    let most = 0;
    let pinged = 0;
    for (let i = 0; i < 152; i++) {
      w.advance(100);
      const now = pings();
      most = Math.max(most, now - pinged);
      pinged = now;
    }
    expect(pinged).toBe(1500);
    expect(most).toBeLessThan(20); // 1500 over 150 ticks
  });
});

describe("presence", () => {
  const status = (agentId: string, online: boolean) => ({
    type: "agent_status",
    agent_id: agentId,
    online,
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });

  it("tells every client of the user, and nobody else, that an agent connected or disconnected", () => {
    const w = world();
    const [one, two, bob] = [w.client("ann"), w.client("ann"), w.client("bob")];
    const lamp = w.agent("lamp");
    const pump = w.agent("pump");
    lamp.hangUp();
    for (const client of [one, two]) {
      expect(client.take()).toEqual([
        status("lamp", true),
        status("pump", true),
        status("lamp", false),
      ]);
    }
    expect(bob.take()).toEqual([]);
    expect(pump.take()).toEqual([]);
    expect(w.store.seen.map(({ agentId }) => agentId)).toEqual(["lamp", "pump", "lamp"]);
  });

  const many = (w: World) => {
    const turns: (() => void)[] = [];
    const clients = Array.from({ length: 100 }, () => w.client("ann"));
    w.turn = (happen) => turns.push(happen);
    const allTurns = () => {
      for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) turn();
    };
    return { clients, turns, allTurns };
  };

  it("notifies many clients over several turns, in order, and later clients of nothing", () => {
    const w = world();
    const { clients, turns, allTurns } = many(w);
    const lamp = w.agent("lamp");
    expect(clients.flatMap((client) => client.inbox)).toEqual([]);
    turns.shift()?.();
    expect(clients.flatMap((client) => client.inbox)).toHaveLength(NEWS_PER_TURN);
    lamp.hangUp();
    w.agent("pump");
    w.advance(1);
    const later = w.client("ann");
    allTurns();
    for (const client of clients) {
      expect(client.take()).toEqual([
        status("lamp", true),
        status("lamp", false),
        status("pump", true),
      ]);
    }
    expect(later.take()).toEqual([]);
  });

  it("notifies many clients only of the latest state of an agent that changes too often", () => {
    const w = world();
    const { clients, allTurns } = many(w);
    const { remoteAgents } = w.hub;
    for (let login = 1; login <= NEWS_KEPT; login++) {
      const lamp = [{ agentId: "lamp", loginNumber: login, onlineForMs: 0 }];
      remoteAgents.online("ann", "far", lamp, true, w.now);
      remoteAgents.offline("ann", "lamp", login, false, w.now);
    }
    w.agent("lamp");
    allTurns();
    const [first, ...others] = clients.map((client) => client.take());
    expect(first?.length).toBeLessThan(NEWS_KEPT + 3);
    expect(first?.at(-1)).toEqual(status("lamp", true));
    for (const told of others) expect(told).toEqual(first);
  });

  it("reports to many clients last that an agent is online that was lost with another node", () => {
    const w = world();
    const { clients, allTurns } = many(w);
    const asked = w.client("ann", true);
    const { remoteAgents } = w.hub;
    const pump = (loginNumber: number) => [{ agentId: "pump", loginNumber, onlineForMs: 0 }];
    remoteAgents.online("ann", "far", pump(1), true, w.now);
    allTurns();
    for (const client of [...clients, asked]) client.take();
    remoteAgents.offline("ann", "pump", 1, false, w.now);
    remoteAgents.online("ann", "near", pump(2), false, w.now);
    allTurns();
    w.advance(1000);
    allTurns();
    for (const client of [...clients, asked]) {
      expect(client.take().at(-1)).toEqual(status("pump", true));
    }
  });

  it("forgets news for many clients once they have left", () => {
    const w = world();
    const { clients, allTurns } = many(w);
    const lamp = w.agent("lamp");
    w.agent("pump");
    for (const client of clients) client.hangUp();
    lamp.hangUp();
    const later = w.client("ann");
    allTurns();
    expect(later.take()).toEqual([]);
  });

  it("reports an agent offline that the relay closed", () => {
    const w = world();
    const agent = w.agent("lamp");
    const client = w.client("ann");
    agent.silent = true;
    w.advance(91_000);
    expect(agent.closed?.code).toBe(1008);
    expect(client.take()).toEqual([status("lamp", false)]);
    expect(w.hub.isOnline("lamp")).toBe(false);
  });

  it("sends a new client nothing by default", () => {
    const w = world();
    w.agent("lamp");
    const client = w.client("ann");
    w.advance(5_000);
    expect(client.take()).toEqual([]);
  });

  it("sends, if asked, one status per online agent of that user, after auth_response", () => {
    const w = world();
    w.agent("lamp");
    w.agent("bobs");
    w.agent("pump").hangUp();
    const client = w.client("ann", true);
    w.advance(5_000);
    expect(client.take()).toEqual([status("lamp", true)]);
  });

  it("paces that, and lets news overtake it", () => {
    const w = world();
    const agents = Array.from({ length: 1000 }, (_, i) => {
      w.user("ann", `a${i}`);
      return w.agent(`a${i}`);
    });
    const client = w.client("ann", true);
    const atOnce = client.take().length;
    expect(atOnce).toBeGreaterThan(0);
    expect(atOnce).toBeLessThan(100);
    agents[999]?.hangUp();
    w.user("ann", "late");
    w.agent("late");
    w.advance(10_000);
    const rest = client.take();
    expect(rest[0]).toEqual(status("a999", false));
    expect(rest[1]).toEqual(status("late", true));
    expect(atOnce + rest.length).toBe(1000 + 1);
  });

  it("gives the time since when in a snapshot, which a takeover does not change", () => {
    const w = world();
    w.agent("lamp");
    const since = new Date(w.now).toISOString();
    w.advance(10_000);
    w.agent("lamp");
    const client = w.client("ann", true);
    expect(client.take()).toMatchObject([{ agent_id: "lamp", timestamp: since }]);
  });

  it("reports an agent once, even if it reconnects during the snapshot", () => {
    const w = world();
    for (let i = 0; i < 100; i++) w.user("ann", `a${i}`);
    const agents = Array.from({ length: 100 }, (_, i) => w.agent(`a${i}`));
    const client = w.client("ann", true);
    agents[99]?.hangUp();
    w.agent("a99");
    w.advance(5_000);
    const told = client.take().filter((message) => message.agent_id === "a99");
    expect(told.map((message) => message.online)).toEqual([false, true]);
  });

  it("sends snapshots to sixteen clients of a user at a time, with each agent once", () => {
    const w = world();
    for (let i = 0; i < 100; i++) {
      w.user("ann", `a${i}`);
      w.agent(`a${i}`);
    }
    const clients = Array.from({ length: 18 }, () => w.client("ann", true));
    const told = clients.map((client) => client.take().length);
    expect(told.map((count) => count > 0)).toEqual(clients.map((_, i) => i < 16));
    w.advance(100);
    expect(clients.slice(16).flatMap((client) => client.inbox)).toEqual([]);
    w.user("ann", "new");
    w.agent("new"); // notified at once, and so in nobody's snapshot
    w.advance(10_000);
    for (const [i, client] of clients.entries()) {
      expect(client.take()).toHaveLength(101 - (told[i] as number));
    }
  });

  it("does not wait for clients that read slowly", () => {
    const tight = new World({ outboxBytes: 4_000 });
    tight.user("ann");
    for (let i = 0; i < 100; i++) {
      tight.user("ann", `a${i}`);
      tight.agent(`a${i}`);
    }
    const slow = Array.from({ length: 16 }, () => tight.connect());
    for (const client of slow) client.stalled = true;
    const quick = tight.connect();
    for (const client of [...slow, quick])
      client.say({ type: "auth", api_token: "acct:ann", client_type: "client", presence: true });
    tight.advance(5_000);
    expect(quick.take().filter(({ type }) => type === "agent_status")).toHaveLength(100);
    for (const client of slow) client.read();
    tight.advance(20_000);
    for (const client of slow) {
      const told = client.take().filter(({ type }) => type === "agent_status");
      expect(new Set(told.map((message) => message.agent_id)).size).toBe(100);
    }
  });

  it("stops when the client leaves", () => {
    const w = world();
    for (let i = 0; i < 100; i++) {
      w.user("ann", `a${i}`);
      w.agent(`a${i}`);
    }
    const client = w.client("ann", true);
    const told = client.take().length;
    client.hangUp();
    w.advance(5_000); // sending on a link that has ended would throw
    expect(told).toBeLessThan(100);
    expect(client.take()).toEqual([]);
  });

  it("does not fill the queue of a client that does not read", () => {
    const tight = new World({ outboxBytes: 4_000 });
    tight.user("ann");
    for (let i = 0; i < 300; i++) {
      tight.user("ann", `a${i}`);
      tight.agent(`a${i}`);
    }
    const client = tight.connect();
    client.stalled = true;
    client.say({ type: "auth", api_token: "acct:ann", client_type: "client", presence: true });
    tight.advance(5_000);
    expect(tight.hub.counters.controlMessagesDropped).toBe(0);
    client.read();
    tight.advance(5_000);
    expect(client.take()).toHaveLength(301);
  });
});

describe("a peer that has ended its side, while its socket stays", () => {
  const pair = () => {
    const w = world();
    const [lamp, client] = [w.agent("lamp"), w.client("ann")];
    client.say(envelope(packet("C"), { agent_id: "lamp" }));
    lamp.take();
    return { w, lamp, client };
  };

  it("is offline at once, and what is sent to it is refused", () => {
    const { w, lamp, client } = pair();
    w.hub.ended(lamp.connection, w.now);
    expect(client.take()).toMatchObject([{ agent_id: "lamp", online: false }]);
    client.say(packet("C.A"));
    expect([client.codes(), lamp.take()]).toEqual([["AGENT_OFFLINE"], []]);
    expect(w.hub.stats().connections).toMatchObject({ agent: 0, closing: 1 });
    lamp.hangUp();
    expect(w.hub.stats().connections).toMatchObject({ agent: 0, closing: 0 });
    expect(client.take()).toEqual([]);
  });

  it("is heard to the end of what it had sent", () => {
    const { w, lamp, client } = pair();
    const turns: (() => void)[] = [];
    w.turn = (happen) => turns.push(happen);
    for (let n = 1; n <= TURN_COST + 20; n++) lamp.say(packet("C.A", n));
    expect(client.take().length).toBeLessThan(TURN_COST + 20);
    w.hub.ended(lamp.connection, w.now);
    for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) turn();
    expect(
      client
        .take()
        .map(({ seq, online }) => seq ?? online)
        .slice(-2),
    ).toEqual([TURN_COST + 20, false]);
  });

  it("and waits for a look-up, is heard if the answer comes before the socket is gone", () => {
    const { w, client } = pair();
    w.user("ann", "away");
    w.slowStore = true;
    client.say(envelope(packet("D"), { agent_id: "away" }));
    w.hub.ended(client.connection, w.now);
    w.answer();
    expect(w.dropped()).toEqual({ AGENT_OFFLINE: 1 });
    client.hangUp();
    expect(w.hub.stats().connections).toMatchObject({ client: 0, closing: 0 });
  });

  it("and waits for its login, takes nobody's place, but counts against its address", () => {
    const w = new World({ waitingPerAddress: 1 });
    w.user("ann", "lamp");
    const lamp = w.agent("lamp");
    const again = w.connect();
    w.slowStore = true;
    again.say(authOf("lamp"));
    w.hub.ended(again.connection, w.now);
    w.answer();
    expect([lamp.closed, again.take(), w.hub.hasRoom("192.0.2.1")]).toEqual([null, [], false]);
    again.hangUp();
    expect(w.hub.hasRoom("192.0.2.1")).toBe(true);
  });
});

describe("a slow receiver", () => {
  const LARGE = "A".repeat(60_000);

  /** A client bound to a lamp that does not read and has a full queue. */
  const stuck = () => {
    const w = world();
    const lamp = w.agent("lamp");
    const client = w.client("ann");
    client.say(envelope(packet("C"), { agent_id: "lamp" }));
    lamp.take();
    lamp.stalled = true;
    while (lamp.queued() + 60_100 <= 1_048_576) client.say(packet("C.A", 1, LARGE));
    return { w, lamp, client };
  };

  it("has 1 MiB; a message beyond that is dropped and its sender gets SLOW_CONSUMER", () => {
    const { w, lamp, client } = stuck();
    expect(client.take()).toEqual([]);
    const delivered = lamp.take().length;
    client.say(packet("C.A", 1, LARGE));
    expect(client.take()).toMatchObject([{ code: "SLOW_CONSUMER", sid: "C.A" }]);
    client.say(envelope(packet("C.A", 1, LARGE), { agent_id: "lamp", request_id: "r" }));
    expect(client.take()).toMatchObject([{ code: "SLOW_CONSUMER", sid: "C.A", request_id: "r" }]);
    expect(lamp.take()).toEqual([]);
    expect(delivered).toBe(17);
    expect(w.hub.counters.forwardedToAgents).toBe(1 + delivered);
    expect(lamp.queued()).toBeLessThanOrEqual(1_048_576);
    expect(w.dropped()).toEqual({ SLOW_CONSUMER: 2 });
    expect(w.hub.stats().queueBytes).toBe(lamp.queued());
  });

  it("that is gone is not counted, though its link still says that it queues", () => {
    const { w, lamp } = stuck();
    lamp.hangUp();
    w.hub.queues(lamp.connection);
    expect([w.hub.stats().queueBytes, lamp.queued() > 0]).toEqual([0, true]);
  });

  it("works in the other direction too: the agent gets the error", () => {
    const w = world();
    const lamp = w.agent("lamp");
    const client = w.client("ann");
    client.say(envelope(packet("C"), { agent_id: "lamp" }));
    lamp.take();
    client.stalled = true;
    for (let i = 0; i < 18; i++) lamp.say(packet("C.A", 1, LARGE));
    expect(lamp.take()).toMatchObject([{ code: "SLOW_CONSUMER", sid: "C.A" }]);
  });

  it("is closed with 1013 after 30 s beyond that", () => {
    const { w, lamp, client } = stuck();
    client.say(packet("C.A", 1, LARGE));
    client.take();
    lamp.silent = true;
    w.advance(29_900);
    expect(lamp.closed).toBeNull();
    w.advance(200);
    expect(lamp.closed).toEqual({ code: 1013, reason: "slow consumer" });
    expect(w.hub.counters.closedForSlowness).toBe(1);
    expect(client.take()).toMatchObject([{ type: "agent_status", online: false }]);
  });

  it("stays open if it reads again in time", () => {
    const { w, lamp, client } = stuck();
    client.say(packet("C.A", 1, LARGE));
    w.advance(29_000);
    lamp.read();
    w.advance(1_000);
    expect(w.hub.stats().slowConnections).toBe(0);
    lamp.stalled = true;
    w.advance(20_000);
    expect(lamp.closed).toBeNull();
    client.take();
    client.say(packet("C.A"));
    expect(client.take()).toEqual([]);
  });

  it("cannot make the relay's own answers grow without bound", () => {
    const w = new World({ outboxBytes: 10_000 });
    w.user("ann");
    const client = w.client("ann");
    client.stalled = true;
    for (let i = 0; i < 1_000; i++) client.say({ type: "ping" });
    expect(client.queued()).toBeLessThanOrEqual(10_000);
    expect(w.hub.counters.controlMessagesDropped).toBeGreaterThan(0);
  });
});

describe("shutdown", () => {
  it("sends everybody RESTARTING with a staggered reconnect_in, then 1012", () => {
    const w = world();
    const peers = [w.agent("lamp"), w.agent("pump"), w.client("ann"), w.connect()];
    for (let i = 0; i < 100; i++) peers.push(w.client("bob"));
    for (const peer of peers) peer.take();
    w.hub.drain();
    w.advance(1_000);
    const waits = peers.map((peer) => {
      expect(peer.closed?.code).toBe(1012);
      const error = peer.take().at(-1);
      expect(error).toMatchObject({ type: "error", code: "RESTARTING" });
      return error?.reconnect_in as number;
    });
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(1);
    expect(new Set(waits).size).toBeGreaterThan(3);
    expect(w.hub.connectionCount).toBe(0);
  });

  it("closes a batch per tick, and new connections at once", () => {
    const w = world();
    const many = Array.from({ length: 500 }, () => w.connect());
    w.hub.drain();
    w.advance(100);
    const gone = many.filter((peer) => peer.closed !== null).length;
    expect(gone).toBeGreaterThan(0);
    expect(gone).toBeLessThan(500);
    const late = w.connect();
    expect(late.codes()).toEqual(["RESTARTING"]);
    expect(late.closed?.code).toBe(1012);
    w.advance(1_000);
    expect(w.hub.connectionCount).toBe(0);
  });
});

describe("figures", () => {
  it("count each message once, by its outcome", () => {
    const w = world();
    const lamp = w.agent("lamp");
    const client = w.client("ann");
    const opening = client.say(envelope(packet("C"), { agent_id: "lamp" }));
    const answer = lamp.say(packet("C.A"));
    client.say(packet("D.A"));
    const { counters, connections, agentsOnline } = w.hub.stats();
    expect(counters).toMatchObject({ received: 3, forwardedToAgents: 1, forwardedToClients: 1 });
    expect(counters.forwardedBytes).toBe(opening.length + answer.length);
    expect(counters.connectionsOpened).toBe(2);
    expect(w.dropped()).toEqual({ UNKNOWN_SESSION: 1 });
    expect(Object.fromEntries(counters.errors)).toEqual({ UNKNOWN_SESSION: 1 });
    expect(connections).toEqual({ client: 1, agent: 1, firmware: 0, waiting: 0, closing: 0 });
    expect(agentsOnline).toBe(1);
  });

  it("count failed authentications and lockouts, which are forgotten when they are over", () => {
    const w = world();
    for (let i = 0; i < 5; i++) {
      w.connect().say({ type: "auth", api_token: "acct:eve", client_type: "client" });
    }
    expect(w.lockout).toMatchObject({ lockouts: 1, failures: 5, size: 1 });
    expect(w.hub.counters.authFailures).toBe(5);
    w.now += 1000 * LOCKOUT_S;
    w.advance(1);
    expect(w.lockout.size).toBe(0);
  });
});
