/** How nodes recover from lost messages, on a simulated bus and clock. */
import { expect, test, vi } from "vitest";
import { UsernameLockout } from "../control/username-lockout.ts";
import type { Claim } from "../core/bus.ts";
import type { Connection } from "../core/connections/connection.ts";
import { Hub } from "../core/hub.ts";
import { MIN_HELD_LINK_MS } from "../core/limits/limits.ts";
import { Lockout } from "../core/limits/lockout.ts";
import type { Notice } from "../store/notices.ts";
import { Cluster, type Shared } from "./cluster.ts";
import { BusSide, MemoryBus } from "./testing/memory-bus.ts";

/** The nodes, and the time. */
class World {
  nowMs = 1_000_000;
  readonly errors: unknown[] = [];
  readonly nodes: Node[] = [];
  readonly bus = new MemoryBus();
  #timers: { at: number; fn: () => void }[] = [];

  add(name: string): Node {
    const node = new Node(this, name);
    this.nodes.push(node);
    return node;
  }

  after(ms: number, fn: () => void): () => void {
    const timer = { at: this.nowMs + ms, fn };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  run(ms: number): void {
    for (const end = this.nowMs + ms; this.nowMs < end; ) {
      this.bus.deliver();
      this.nowMs += 25;
      const due = this.#timers.filter(({ at }) => at <= this.nowMs);
      this.#timers = this.#timers.filter(({ at }) => at > this.nowMs);
      for (const { fn } of due) fn();
      for (const { hub, cluster, side } of this.nodes.filter((node) => !node.side.isFrozen)) {
        if (this.nowMs % 100 === 0) hub.tick(this.nowMs);
        if (this.nowMs % 1000 === 0 && side.isUp) cluster.tick();
      }
    }
    this.bus.deliver();
  }
}

class Node {
  readonly side: BusSide;
  readonly hub: Hub;
  readonly cluster: Cluster;
  /** The notices of each message that announced some. */
  readonly heard: (readonly Notice[])[] = [];
  isReady = true;
  readonly #world: World;

  constructor(world: World, name: string) {
    this.#world = world;
    this.side = new BusSide(world.bus);
    this.cluster = new Cluster({
      transport: this.side,
      node: name,
      prefix: "p",
      maxMessageBytes: 65_536,
      nowMs: () => world.nowMs,
      log: { error: ({ err }: { err?: unknown }) => world.errors.push(err) },
      after: (ms, fn) => world.after(ms, fn),
    });
    const port = {
      authenticate: () => {},
      findOwner: (connection: Connection) =>
        world.after(1, () => this.hub.ownerFound(connection, "u", world.nowMs)),
      nextTurn: () => world.after(1, () => this.hub.turn(world.nowMs)),
      agentSeen: () => {},
      saveRequestsUsed: () => {},
    };
    this.hub = new Hub(
      port as unknown as ConstructorParameters<typeof Hub>[0],
      { bus: this.cluster },
      world.nowMs,
    );
    const notices = { hear: (some: readonly Notice[]) => this.heard.push(some) };
    const shared = {
      notices,
      lockout: new Lockout(),
      usernameLockout: new UsernameLockout(),
      isReady: () => this.isReady,
    };
    this.cluster.attach(this.hub, shared as unknown as Shared);
  }

  agent(agentId: string, loginNumber: number) {
    const login = { role: "agent" as const, userId: "u", agentId, loginNumber, sessionHash: "a" };
    const { done, ...peer } = this.#connect({ client_type: "agent", agent_id: agentId }, login);
    this.cluster.claim("u", agentId, loginNumber, done);
    return peer;
  }

  client(fields: object = {}, accepted: object = {}) {
    const login = {
      role: "client" as const,
      userId: "u",
      sessionHash: "c",
      requestsUsed: 0,
      ...accepted,
    };
    const { done, ...peer } = this.#connect({ client_type: "client", ...fields }, login);
    done();
    return peer;
  }

  #connect(fields: object, login: object) {
    const heard: { type: string; code?: string; online?: boolean; sid?: string }[] = [];
    const link = {
      send: (frame: string | Uint8Array) => heard.push(JSON.parse(Buffer.from(frame).toString())),
      queued: () => 0,
      close: () => {},
      pause: () => {},
      resume: () => {},
    };
    const { hub } = this;
    const connection = hub.connect(link, "192.0.2.1", this.#world.nowMs);
    const receive = (message: object) => {
      const text = JSON.stringify(message);
      hub.receive(connection, text, Buffer.from(text), this.#world.nowMs);
    };
    receive({ type: "auth", api_token: "x", ...fields });
    const done = (claim?: Claim) => {
      const expiresAtMs = this.#world.nowMs + 1e9;
      const result = { ok: true, sessionToken: "s", expiresAtMs, ...login };
      const { nowMs } = this.#world;
      hub.authenticated(connection, result as Parameters<Hub["authenticated"]>[1], nowMs, claim);
    };
    const statuses = () =>
      heard.filter(({ type }) => type === "agent_status").map(({ online }) => online);
    return { connection, receive, done, heard, statuses };
  }
}

const twoNodes = () => {
  const world = new World();
  const [a, b] = [world.add("A"), world.add("B")];
  world.run(2000);
  return { world, a, b };
};

test("presence is correct again after an outage, whichever node is back first", () => {
  for (const firstBack of ["a", "b"] as const) {
    const { world, a, b } = twoNodes();
    const watcher = b.client();
    a.agent("pump", 1);
    world.run(500);
    a.side.isUp = b.side.isUp = false;
    world.run(2000);
    (firstBack === "a" ? a : b).side.comeBack();
    world.run(500);
    (firstBack === "a" ? b : a).side.comeBack();
    world.run(60_000);
    expect(watcher.statuses().at(-1), firstBack).toBe(true);
  }
});

test("presence is correct again after a node was silent long enough to count as gone", () => {
  const { world, a, b } = twoNodes();
  const watcher = b.client();
  a.agent("pump", 1);
  world.run(500);
  a.side.isFrozen = true;
  world.run(7000);
  expect(watcher.statuses()).toEqual([true, false]);
  a.side.thaw();
  world.run(60_000);
  expect(watcher.statuses()).toEqual([true, false, true]);
});

test("what a node reported before it was taken for lost, and arrives later, is not believed", () => {
  const { world, a, b } = twoNodes();
  const watcher = b.client();
  a.agent("pump", 1);
  world.run(500);
  world.bus.kill(a.side);
  world.run(7000);
  const late = JSON.stringify([{ agentId: "pump", epoch: 1, onlineForMs: 1000 }]);
  world.bus.hand(b.side, "p.u.u", Buffer.from(`here A u 1\n${late}`));
  world.run(60_000);
  expect(watcher.statuses()).toEqual([true, false]);
});

test("agents that connected or left during a short outage of their node become known", () => {
  const { world, a, b } = twoNodes();
  const watcher = b.client();
  const pump = a.agent("pump", 1);
  world.run(500);
  a.side.isUp = false;
  a.agent("lamp", 2);
  a.hub.closed(pump.connection, world.nowMs);
  world.run(2000);
  expect(watcher.statuses()).toEqual([true]);
  a.side.comeBack();
  world.run(60_000);
  expect(watcher.statuses()).toEqual([true, true, false]);
});

test("presence is correct again after a lost message that no node misses", () => {
  const { world, a, b } = twoNodes();
  const watcher = b.client();
  world.run(500);
  world.bus.lost = ["here"];
  const pump = a.agent("pump", 1);
  world.run(500);
  world.bus.lost = [];
  expect(watcher.statuses()).toEqual([]);
  world.run(40_000);
  expect(watcher.statuses()).toEqual([true]);

  world.bus.lost = ["gone"];
  a.hub.closed(pump.connection, world.nowMs);
  world.run(500);
  world.bus.lost = [];
  expect(watcher.statuses()).toEqual([true]);
  world.run(40_000);
  expect(watcher.statuses()).toEqual([true, false]);
});

test("an agent stays online if the message about its move to a third node was lost", () => {
  const { world, a, b } = twoNodes();
  const c = world.add("C");
  world.run(2000);
  const watcher = b.client();
  a.agent("pump", 1);
  a.agent("lamp", 2);
  world.run(500);
  world.bus.lost = ["gone", "here"];
  const moved = c.agent("pump", 3);
  world.run(500);
  world.bus.lost = [];
  world.run(40_000);
  expect(watcher.statuses()).toEqual([true, true]);
  c.hub.closed(moved.connection, world.nowMs);
  world.run(500);
  expect(watcher.statuses()).toEqual([true, true, false]);
});

test("what clients were told of an agent that left counts as long as one of them is there", () => {
  const { world, a, b } = twoNodes();
  const [board, watcher] = [a.agent("pump", 1), b.client()];
  b.agent("valve", 2); // keeps what the node knows of the user
  world.run(1000);
  a.hub.closed(board.connection, world.nowMs);
  world.run(25);
  expect(watcher.statuses()).toContain(false);
  const known = () => b.hub.isOnlineAnywhere("u", "pump");
  expect(known()).toBe(false);
  b.hub.closed(watcher.connection, world.nowMs);
  a.agent("pump", 3);
  world.run(100);
  expect(known()).toBe(null);
  b.client();
  expect(known()).toBe(null); // until the other node has answered
  world.run(100);
  expect(known()).toBe(true);
});

test("nodes that agree compare each user once in 30 s, and send nothing else", () => {
  const { world, a, b } = twoNodes();
  b.client();
  for (let number = 1; number <= 50; number += 1) a.agent(`pump-${number}`, number);
  world.run(500);
  world.bus.sent.splice(0);
  world.run(30_000);
  const sent = (kind: string) => world.bus.sent.filter((each) => each === kind).length;
  expect(sent("compare")).toBe(1);
  expect(sent("holding")).toBeLessThanOrEqual(30);
  expect(world.bus.sent.filter((kind) => !["hello", "compare", "holding"].includes(kind))).toEqual(
    [],
  );
});

test("two links of an agent become one within 35 s of the lost messages, on nodes without clients", () => {
  for (const [older, newer] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const { world, a, b } = twoNodes();
    const nodes = [a, b];
    const first = (nodes[older] as Node).agent("pump", 29);
    world.run(700);
    world.bus.lost = ["claim", "holds"];
    (nodes[newer] as Node).agent("pump", 30);
    world.run(2000);
    world.bus.lost = [];
    const holders = () => nodes.map(({ hub }) => hub.isOnline("pump"));
    expect(holders()).toEqual([true, true]);
    world.run(32_000);
    expect(holders()).toEqual([newer === 0, newer === 1]);
    expect(first.heard.at(-1)).toMatchObject({ code: "REPLACED" });
  }
});

test("two links of an agent become one within 35 s of when a node may publish again", () => {
  for (const [mute, number] of [
    [0, 29],
    [0, 31],
    [1, 29],
    [1, 31],
  ] as const) {
    const { world, a, b } = twoNodes();
    const nodes = [a, b];
    const silent = nodes[mute] as Node;
    silent.side.isMute = true;
    (nodes[1 - mute] as Node).agent("pump", number);
    world.run(700);
    silent.agent("pump", 30);
    world.run(15_000);
    const holders = () => nodes.map(({ hub }) => hub.isOnline("pump"));
    expect(holders().filter((holds) => holds)).not.toHaveLength(0);
    silent.side.isMute = false;
    world.run(35_000);
    const newer = number > 30 ? 1 - mute : mute;
    expect(holders()).toEqual([newer === 0, newer === 1]);
  }
});

test("agents in any number are named within 30 s, in messages that fit", () => {
  const { world, a } = twoNodes();
  for (let number = 1; number <= 1000; number += 1) {
    a.agent(`${number}-`.padEnd(64, "x"), 30 * number); // all have their turn at once
    if (number % 16 === 0) world.run(100);
  }
  world.run(2000);
  const named = new Set<string>();
  const publish = world.bus.publish.bind(world.bus);
  vi.spyOn(world.bus, "publish").mockImplementation((from, subject, payload, replyTo) => {
    const text = Buffer.from(payload).toString();
    if (text.startsWith("holding ")) {
      expect(payload.length).toBeLessThan(65_536);
      const { agents } = JSON.parse(text.slice(text.indexOf("\n")));
      for (const { agentId } of agents) named.add(agentId);
    }
    publish(from, subject, payload, replyTo);
  });
  world.run(30_000);
  expect(named.size).toBe(1000);
});

const packet = (sid: string, seq: number) => ({ v: "1", sid, seq, p: "x" });
const call = (sid: string) => ({
  type: "relay",
  agent_id: "pump",
  payload: JSON.stringify(packet(sid, 0)),
});
const sids = (heard: readonly { sid?: string }[]) =>
  heard.flatMap(({ sid }) => (sid === undefined ? [] : [sid]));

test("on a bus that delivers everything twice an agent has one link, is said to be online once, and is reached", () => {
  const { world, a, b } = twoNodes();
  world.bus.isDoubling = true;
  const watcher = b.client();
  const [first, client] = [a.agent("pump", 1), b.client()];
  world.run(2000);
  client.receive(call("one"));
  world.run(500);
  const second = b.agent("pump", 2);
  world.run(2000);
  client.receive(call("two"));
  world.run(60_000);
  expect([a.hub.isOnline("pump"), b.hub.isOnline("pump")]).toEqual([false, true]);
  expect(watcher.statuses()).toEqual([true]);
  // Doubled calls are passed on: only their receiver can tell.
  const calls = [first, second].map(({ heard }) => heard.filter(({ type }) => type === "relay"));
  expect(calls.map(({ length }) => length)).toEqual([2, 1]);
  expect(world.errors).toEqual([]);
});

test("of two links of an agent the older one ends, however often it was taken over", () => {
  const { world, a, b } = twoNodes();
  for (let loginNumber = 1; loginNumber <= 6; loginNumber += 1) {
    a.agent("pump", loginNumber);
    world.run(100);
  }
  a.side.isFrozen = true;
  b.agent("pump", 7);
  world.run(2000);
  a.side.thaw();
  world.run(60_000);
  expect([a.hub.isOnline("pump"), b.hub.isOnline("pump")]).toEqual([false, true]);
});

test("a guest does not stay if its farewell was lost", () => {
  const { world, a, b } = twoNodes();
  a.agent("pump", 1);
  const clients = [b.client(), b.client()];
  for (const [at, client] of clients.entries()) client.receive(call(`C${at}`));
  world.run(500);
  expect(a.hub.stats().guests).toBe(2);
  a.side.isUp = false;
  b.hub.closed((clients[0] as (typeof clients)[0]).connection, world.nowMs);
  world.run(500);
  a.side.comeBack();
  world.run(40_000);
  expect(a.hub.stats().guests).toBe(1);
});

test("an agent reaches its sessions again once the node of their client, taken for lost, is heard", () => {
  const { world, a, b } = twoNodes();
  const pump = a.agent("pump", 1);
  const client = b.client();
  client.receive(call("C"));
  world.run(500);
  b.side.isMute = true;
  world.run(8000);
  expect(a.hub.stats().guests).toBe(0);
  b.side.isMute = false;
  world.run(3000);
  pump.receive({ v: "1", sid: "C.A", seq: 1, p: "x" });
  world.run(500);
  expect(client.heard.at(-1)).toMatchObject({ sid: "C.A", seq: 1 });
  expect(client.statuses()).not.toContain(false);
});

test("guests of a node that was never heard from leave too", () => {
  const { world, a, b } = twoNodes();
  a.agent("pump", 1);
  world.run(100);
  const text = JSON.stringify(call("C"));
  world.bus.publish(b.side, "p.a.pump", Buffer.from(`msg stranger 7 u hash\n${text}`), null);
  world.run(1000);
  expect(a.hub.stats().guests).toBe(1);
  world.run(40_000);
  expect(a.hub.stats().guests).toBe(0);
});

test("an agent's first message on its new node reaches an existing session", () => {
  const { world, a, b } = twoNodes();
  const c = world.add("C");
  world.run(2000);
  a.agent("pump", 1);
  const far = b.client();
  const near = c.client();
  const old = a.client();
  far.receive(call("FAR"));
  near.receive(call("NEAR"));
  old.receive(call("OLD"));
  world.run(500);
  // Only the claim's answer reports the sessions.
  b.cluster.bind = a.cluster.bind = c.cluster.bind = () => {};
  const moved = c.agent("pump", 2);
  world.run(100);
  for (const sid of ["FAR.A", "NEAR.A", "OLD.A"]) moved.receive(packet(sid, 1));
  world.run(100);
  expect([far, near, old].map(({ heard }) => sids(heard))).toEqual([
    ["FAR.A"],
    ["NEAR.A"],
    ["OLD.A"],
  ]);
});

test("an agent with very many sessions moves no slower: as many as fit are handed over", () => {
  const { world, a, b } = twoNodes();
  a.agent("pump", 1);
  for (let n = 0; n < 5; n += 1) {
    const client = a.client();
    for (let at = 0; at < 1024; at += 1) {
      client.receive(call(`${n}-${at}-`.padEnd(64, "x")));
      if (at % 64 === 0) world.run(100);
    }
  }
  expect(a.hub.stats().bindings).toBeGreaterThan(5000);
  const moved = b.agent("pump", 2);
  world.run(500);
  expect(b.cluster.traffic()).toMatchObject({ claims: 0, malformed: 0 });
  expect(moved.heard[0]).toMatchObject({ type: "auth_response", status: "authenticated" });
});

test("nodes' own messages fit wherever a client's longest message does", () => {
  const { world, a, b } = twoNodes();
  a.agent("pump", 1);
  for (let n = 0; n < 500; n += 1) {
    a.agent(`${n}-`.padEnd(64, "x"), Number.MAX_SAFE_INTEGER - n);
    if (n % 16 === 0) world.run(100);
  }
  world.nowMs += 0.1; // as real clocks do
  const client = b.client();
  for (let at = 0; at < 1024; at += 1) {
    client.receive(call(`${at}-`.padEnd(64, "x")));
    if (at % 64 === 0) world.run(100);
  }
  world.run(500);
  const moved = world.add("C").agent("pump", 2);
  world.run(3000);
  expect(world.bus.sent).toEqual(expect.arrayContaining(["here", "bind", "claimed"]));
  expect(a.hub.stats().agentsOnline).toBe(500);
  expect(world.bus.longestBytes).toBeLessThanOrEqual(65_536 + 512);
  // The last part arrived, too.
  moved.receive(packet(`${"1023-".padEnd(64, "x")}.A`, 1));
  world.run(100);
  expect(sids(client.heard)).toHaveLength(1);
});

test("agents that leave restarting nodes are not taken over, however many these are", () => {
  const world = new World();
  const nodes = Array.from({ length: 8 }, (_, at) => world.add(`N${at}`));
  world.run(2000);
  for (const [at, node] of nodes.entries()) {
    const { heard } = node.agent("pump", at + 1);
    world.run(500);
    expect(heard[0]).toMatchObject({ type: "auth_response", status: "authenticated" });
    if (at < nodes.length - 1) node.hub.drain();
  }
  const last = nodes.at(-1) as Node;
  for (let n = 0; n < 5; n += 1) last.agent("pump", 100 + n);
  expect(last.hub.counters.takeovers).toBe(5);
  expect(nodes[0]?.hub.counters.takeovers).toBe(0);
});

test("what waits for a moving agent is bounded over all agents, and refused beyond that", () => {
  const { world, a, b } = twoNodes();
  world.bus.lost = ["passed"]; // so that it waits for long
  for (const agentId of ["pump", "lamp"]) a.agent(agentId, 1);
  world.run(100);
  const devices = ["pump", "lamp"].map((agentId) => b.agent(agentId, 2));
  world.run(100);
  const before = devices.map(({ heard }) => heard.length);
  const messages = 200;
  for (const [at, agentId] of ["pump", "lamp"].entries()) {
    const text = JSON.stringify({ ...call(`C${at}`), agent_id: agentId, filler: "" });
    const long = text.replace('"filler":""', `"filler":"${"x".repeat(65_000)}"`);
    for (let n = 0; n < messages; n += 1) {
      world.bus.publish(a.side, `p.a.${agentId}`, Buffer.from(`msg A ${at} u h\n${long}`), null);
    }
  }
  world.run(200);
  expect(devices.map(({ heard }) => heard.length)).toEqual(before);
  const refused = world.bus.sent.filter((kind) => kind === "say").length;
  expect((2 * messages - refused) * 65_000).toBeLessThan(16_777_216);
  expect((2 * messages - refused + 1) * 66_000).toBeGreaterThan(16_777_216);
  world.run(2000);
  expect(devices.every(({ heard }, at) => heard.length > (before[at] ?? 0))).toBe(true);
  // Now there is room again.
  const said = () => world.bus.sent.filter((kind) => kind === "say").length;
  const saidBefore = said();
  a.agent("pump", 3);
  world.run(3000);
  b.agent("pump", 4);
  world.run(100);
  const text = JSON.stringify(call("C"));
  world.bus.publish(b.side, "p.a.pump", Buffer.from(`msg B 7 u h\n${text}`), null);
  world.run(100);
  expect(said()).toBe(saidBefore);
});

test("a malformed message does not keep later ones from an agent that has just connected", () => {
  const { world, a, b } = twoNodes();
  world.bus.lost = ["passed"]; // so that it waits for long
  a.agent("pump", 1);
  world.run(100);
  const device = b.agent("pump", 2);
  world.run(100);
  const text = JSON.stringify(call("C"));
  const bad = ["msg A x u h\ntext", `msg A 1 u h\n${"x".repeat(70_000)}`];
  for (const message of [...bad, `msg A 1 u h\n${text}`]) {
    world.bus.publish(a.side, "p.a.pump", Buffer.from(message), null);
  }
  world.run(2000);
  expect(device.heard).toContainEqual(call("C"));
  expect(b.cluster.traffic()).toMatchObject({ claims: 0, malformed: 2 });
});

test("a hub that fails on one message for an agent handles the others", () => {
  const { world, a, b } = twoNodes();
  world.bus.lost = ["passed"];
  a.agent("pump", 1);
  world.run(100);
  const device = b.agent("pump", 2);
  world.run(100);
  for (const number of [1, 2]) {
    const text = JSON.stringify(call(`C${number}`));
    world.bus.publish(a.side, "p.a.pump", Buffer.from(`msg A ${number} u h\n${text}`), null);
  }
  vi.spyOn(b.hub.guests, "receive").mockImplementationOnce(() => {
    throw new Error("a bug");
  });
  world.run(2000);
  expect(device.heard).toContainEqual(call("C2"));
  expect(world.errors).toHaveLength(1);
});

test("a node of a version without planned moves still hands an agent over", () => {
  const world = new World();
  const b = world.add("B");
  const old = new BusSide(world.bus);
  old.subscribe("p.a.pump", ({ replyTo }) => {
    const bound = { node: "OLD", connection: 1, userId: "u", sessionHash: "h", firsts: ["C"] };
    const said = { kind: "yielded", onlineForMs: 5000, takeoverAgesMs: [], bindings: [bound] };
    const text = JSON.stringify(said);
    if (replyTo !== null) old.publish(replyTo, Buffer.from(`claimed\n${text}`));
  });
  world.run(500);
  const device = b.agent("pump", 2);
  world.run(100);
  expect(device.heard[0]).toMatchObject({ type: "auth_response", status: "authenticated" });
  expect(b.hub.agentsOf("u", world.nowMs)).toMatchObject([{ onlineForMs: 5100 }]);
  expect(b.hub.stats().bindings).toBe(1);
  expect(b.cluster.traffic()).toMatchObject({ claims: 0, malformed: 0 });
});

test("a claim that arrived before the bus was lost is not answered afterwards", () => {
  const { world, a, b } = twoNodes();
  a.agent("pump", 1);
  world.run(100);
  b.agent("pump", 2);
  world.bus.deliver();
  a.side.isUp = false;
  world.run(100);
  expect(a.hub.isOnline("pump")).toBe(false);
  expect(world.bus.sent).not.toContain("claimed");
});

test("an agent is offline at once if the login for which another node let it go failed", () => {
  const { world, a, b } = twoNodes();
  const watcher = a.client();
  a.agent("pump", 1);
  world.run(500);
  const gone = b.agent("pump", 2);
  b.hub.closed(gone.connection, world.nowMs);
  world.run(200);
  expect(a.hub.isOnline("pump")).toBe(false);
  expect(watcher.statuses()).toEqual([true, false]);
});

test("malformed messages are dropped and counted, whatever their subject", () => {
  const { world, a } = twoNodes();
  a.agent("pump", 1);
  a.client();
  world.run(500);
  const long = "x".repeat(300_000);
  const forged = [
    [
      "all",
      "",
      "hello",
      "hello X\n",
      "hello X\n{}",
      "hello X\nnull",
      "hello *\n{}",
      `hello X\n${long}`,
    ],
    ["all", "who X\n{}", "failed X\n7", "known X\n{}", 'failed X\n{"address":7}'],
    ["u.u", "here X u 1\n{}", 'here X u 1\n[{"agentId":"a b"}]', "gone X u pump -1 0\n"],
    ["a.pump", "msg X 1 u\n{}", "msg X one u h\n{}", `msg X 1 u h\n${long}`, "bind X 1 u h\n{}"],
    ["a.pump", "claim X\n", "claim X -1\n", "holds * 1\n", "msg X 1 u h\n\xff"],
    ["n.A.0", "ans X\n", "say X one\n", "fwd pump X\n", "guest X\n", "left X x\n"],
    ["n.A.0", "refuse pump NO_SUCH\n{}", "refuse pump SLOW_CONSUMER\n7", "claimed\n{}", "who X\n"],
    ["n.A.0", "compare X\n{}", 'compare X\n[{"userId":"a b","digest":1}]', "differs X\n"],
  ] as const;
  let sent = 0;
  for (const [subject, ...messages] of forged) {
    for (const message of messages) {
      world.bus.publish(a.side, `p.${subject}`, Buffer.from(message, "latin1"), null);
      sent += 1;
    }
  }
  world.run(1000);
  expect(a.cluster.traffic().malformed).toBe(sent);
  expect(a.cluster.membership.figures()).toHaveLength(1);
  expect(world.errors).toEqual([]);
  expect(a.hub.stats().guests).toBe(0);
});

test("no age that another node reports keeps a node from telling its clients who is online", () => {
  const { world, a } = twoNodes();
  const watcher = a.client({ presence: true });
  const report = (agentId: string, onlineForMs: number) =>
    Buffer.from(`here B u 0\n${JSON.stringify([{ agentId, epoch: 1, onlineForMs }])}`);
  world.bus.publish(a.side, "p.u.u", report("old", 1e12), null);
  world.bus.publish(a.side, "p.u.u", report("older", Number.MAX_SAFE_INTEGER), null);
  world.run(500);
  expect(watcher.statuses()).toEqual([true]);
  expect(a.cluster.traffic().malformed).toBe(1);
});

test("a node's guests take turns: a heavy sender delays only their own messages", () => {
  const { world, a, b } = twoNodes();
  const device = a.agent("pump", 1);
  const client = b.client();
  client.receive(call("C"));
  world.run(100);
  const text = (seq: number) => JSON.stringify(packet("C.A", seq));
  const flood = 1000;
  for (let seq = 1; seq <= flood; seq += 1) {
    const head = `msg B 1 u c\n${text(seq)}`;
    world.bus.publish(b.side, "p.a.pump", Buffer.from(head), null);
  }
  const before = device.heard.length;
  world.bus.deliver();
  const inOneTurn = device.heard.length - before;
  expect(inOneTurn).toBeGreaterThan(10);
  expect(inOneTurn).toBeLessThan(flood / 2);
  world.run(5000);
  expect(device.heard.length - before).toBe(flood);
  const seqs = device.heard.slice(before).map((message) => (message as { seq?: number }).seq);
  expect(seqs).toEqual(Array.from({ length: flood }, (_, i) => i + 1));
});

test("what a client with an access key sends over nodes is charged to its account's keys, also after a move", () => {
  const { world, a, b } = twoNodes();
  const c = world.add("C");
  world.run(2000);
  const key = { id: "k", matches: null, agents: null };
  const renewing = { sessionHash: "k2", renews: "k1", key };
  const account = b.client();
  const keys = [b.client({}, { sessionHash: "k1", key }), b.client({}, renewing)];
  a.agent("pump", 1);
  world.run(1000);
  const origins = () =>
    world.nodes.flatMap(({ hub }) =>
      hub.guests
        .bindingsOf("u", "pump")
        .filter(({ node }) => node !== null)
        .map(({ firsts, renews, isKeyed }) => [...firsts, renews, isKeyed]),
    );
  for (const [at, client] of [account, ...keys].entries()) client.receive(call(`C${at}`));
  world.run(100);
  const known = [
    ["C0", undefined, false],
    ["C1", undefined, true],
    ["C2", "k1", true],
  ];
  expect(origins()).toEqual(known);
  world.bus.lost = ["bind"]; // so that the new node knows only what it is handed over
  const device = c.agent("pump", 2);
  world.run(2000);
  expect(origins()).toEqual(known);
  for (let seq = 1; seq <= 100; seq += 1) {
    const text = JSON.stringify(packet("C1.A", seq));
    world.bus.publish(b.side, "p.a.pump", Buffer.from(`msg B 2 u k1 - key\n${text}`), null);
  }
  account.receive(packet("C0.A", 1));
  world.bus.deliver();
  const sids = device.heard.map(({ sid }) => sid);
  expect(sids).toContain("C0.A");
  expect(sids.length).toBeLessThan(100);
});

test("the words of an older node name a guest without an access key, and other words no guest", () => {
  const { world, a } = twoNodes();
  a.agent("pump", 1);
  world.run(100);
  const text = JSON.stringify(call("C"));
  const publish = (words: string) =>
    world.bus.publish(a.side, "p.a.pump", Buffer.from(`msg ${words}\n${text}`), null);
  for (const words of ["X 1 u h", "X 2 u h older"]) publish(words);
  for (const words of ["X 3 u h - admin", "X 4 u h older KEY", "X 5 u h  key"]) publish(words);
  world.run(100);
  expect(a.cluster.traffic().malformed).toBe(3);
  expect(a.hub.stats().guests).toBe(2);
  const [bound] = a.hub.guests.bindingsOf("u", "pump");
  const last = { node: "X", connection: 2, userId: "u", sessionHash: "h", renews: "older" };
  expect(bound).toEqual({ ...last, isKeyed: false, firsts: ["C"] });
});

test("a newcomer on a draining node is sent on at once only while another node says that it is ready", () => {
  const { world, a, b } = twoNodes();
  a.isReady = false;
  a.hub.drain();
  world.run(1000);
  const waits = () =>
    Array.from({ length: 8 }, () => a.client().heard[0] as { reconnect_in?: number }).map(
      ({ reconnect_in }) => reconnect_in,
    );
  expect(new Set(waits())).toEqual(new Set([1]));
  b.isReady = false;
  world.run(1000);
  expect(new Set(waits()).size).toBeGreaterThan(5);
  b.isReady = true;
  world.run(1000);
  expect(new Set(waits())).toEqual(new Set([1]));
  world.bus.kill(b.side);
  world.run(7000);
  expect(new Set(waits()).size).toBeGreaterThan(5);
});

test("notices reach the other nodes in the message itself, except those that would admit somebody", () => {
  const { world, a, b } = twoNodes();
  const notice = (seq: number, kind: Notice["kind"] = "end_session"): Notice => ({
    seq,
    kind,
    subject: "h".repeat(64),
    at: 1,
  });
  const many = Array.from({ length: 250 }, (_, seq) => notice(seq));
  a.cluster.post([...many, notice(250, "unlock")]);
  world.run(100);
  expect(b.heard.flat()).toEqual(many);
  expect(b.heard.at(-1)).toEqual([]); // it is in the store
  expect(world.bus.longestBytes).toBeLessThan(65_536);
  expect(a.heard).toEqual([]);
});

test("a hint without notices, as older nodes send it, is a reason to look; what is malformed is not", () => {
  const { world, b } = twoNodes();
  const say = (text: string) => world.bus.hand(b.side, "p.all", Buffer.from(`notice OLD\n${text}`));
  say("{}");
  expect(b.heard).toEqual([[]]);
  say('{"notices":[{"seq":1,"kind":"unlock","subject":"grace","at":1}]}');
  say('{"notices":[{"seq":1,"kind":"end_agent","subject":"a b","at":1}]}');
  say('{"notices":[{"seq":-1,"kind":"end_agent","subject":"a","at":1}]}');
  say(
    `{"notices":${JSON.stringify(Array(101).fill({ seq: 1, kind: "end_agent", subject: "a", at: 1 }))}}`,
  );
  expect(b.heard).toEqual([[]]);
  expect(b.cluster.traffic().malformed).toBe(4);
});

/** What a client received, without presence. */
const said = ({ heard }: { heard: readonly { type: string; code?: string; sid?: string }[] }) =>
  heard.flatMap(({ type, code, sid }) => (type === "agent_status" || !sid ? [] : [code ?? sid]));

test("callers of an agent that its node has sent away are asked to wait, on every node, until it counts as offline", () => {
  const { world, a, b } = twoNodes();
  const board = a.agent("pump", 1);
  const [near, far] = [a.client(), b.client()];
  near.receive(call("NEAR"));
  far.receive(call("FAR"));
  world.run(500);
  a.hub.drain();
  world.run(500);
  a.hub.closed(board.connection, world.nowMs);
  world.run(100);
  near.receive(packet("NEAR.A", 1));
  far.receive(packet("FAR.A", 1));
  world.run(100);
  expect([near, far].map(said)).toEqual([["UNAVAILABLE"], ["UNAVAILABLE"]]);
  a.cluster.leaveAll();
  world.bus.deliver();
  world.bus.kill(a.side);
  far.receive(packet("FAR.A", 2));
  world.run(6000);
  far.receive(packet("FAR.A", 3));
  world.run(100);
  expect(said(far)).toEqual(["UNAVAILABLE", "UNAVAILABLE", "AGENT_OFFLINE"]);
  expect(far.statuses()).toEqual([true, false]);
});

test("an agent that left is offline at once, and one with a killed node once that is noticed", () => {
  const { world, a, b } = twoNodes();
  const client = b.client();
  const pump = a.agent("pump", 1);
  world.run(500);
  client.receive(call("C"));
  world.run(100);
  a.hub.closed(pump.connection, world.nowMs);
  world.run(100);
  client.receive(packet("C.A", 1));
  world.run(100);
  expect(said(client)).toEqual(["AGENT_OFFLINE"]);
  a.agent("pump", 2);
  world.run(500);
  world.bus.kill(a.side);
  client.receive(packet("C.A", 2));
  world.run(7000);
  client.receive(packet("C.A", 3));
  world.run(100);
  expect(said(client)).toEqual(["AGENT_OFFLINE", "UNAVAILABLE", "AGENT_OFFLINE"]);
});

test("a board answers what it was sent before its node closes its link, and gets nothing more", () => {
  const { world, a, b } = twoNodes();
  const board = a.agent("pump", 1);
  const clients = [b.client(), b.client()];
  const say = (seq: number) => {
    for (const [at, client] of clients.entries()) client.receive(packet(`C${at}.A`, seq));
  };
  for (const [at, client] of clients.entries()) client.receive(call(`C${at}`));
  world.run(500);
  for (const at of clients.keys()) board.receive(packet(`C${at}.A`, 0));
  a.hub.drain();
  world.run(100);
  const { reconnect_in: inS } = board.heard.at(-1) as { reconnect_in?: number };
  world.run(1000 * (inS ?? 0) + MIN_HELD_LINK_MS - 300);
  say(1);
  world.run(1000);
  say(2);
  world.run(100);
  expect(sids(board.heard)).toEqual(["C0.A", "C1.A"]);
  for (const at of clients.keys()) board.receive(packet(`C${at}.A`, 1));
  world.run(200);
  expect(a.hub.isOnline("pump")).toBe(false);
  expect(clients.map(said)).toEqual([
    ["C0.A", "UNAVAILABLE", "C0.A"],
    ["C1.A", "UNAVAILABLE", "C1.A"],
  ]);
});

test("forwarded messages for an agent are not overtaken on its new node", () => {
  const { world, a, b } = twoNodes();
  const c = world.add("C");
  world.run(2000);
  const board = a.agent("pump", 1);
  c.client().receive(call("C"));
  world.run(500);
  a.hub.drain();
  world.run(500);
  a.hub.closed(board.connection, world.nowMs);
  world.run(500);
  const message = (seq: number) =>
    Buffer.from(`msg C 1 u c\n${JSON.stringify(packet("C.A", seq))}`);
  const publish = world.bus.publish.bind(world.bus);
  let passOn = () => {};
  vi.spyOn(world.bus, "publish").mockImplementation((from, subject, payload, replyTo) => {
    const text = Buffer.from(payload).toString("latin1");
    // One message reaches only the old node, and takes the longer way.
    if (text.startsWith("claimed")) world.bus.hand(a.side, "p.a.pump", message(1));
    if (!/^(fwd|passed)/.test(text)) publish(from, subject, payload, replyTo);
    else {
      const before = passOn;
      passOn = () => {
        before();
        publish(from, subject, payload, replyTo);
      };
    }
  });
  const device = b.agent("pump", 2);
  world.run(50);
  world.bus.hand(b.side, "p.a.pump", message(2));
  world.run(50);
  passOn();
  world.run(2000);
  const seqs = device.heard.flatMap((message) => (message as { seq?: number }).seq ?? []);
  expect(seqs).toEqual([1, 2]);
});

test("a node that rebalances: boards between two links are expected, newcomers are sent on, and it ends", () => {
  const { world, a, b } = twoNodes();
  const watcher = b.client();
  const boards = Array.from({ length: 10 }, (_, i) => a.agent(`board-${i}`, i + 1));
  world.run(500);
  a.isReady = false;
  expect(a.hub.rebalance(30)).toEqual({ links: 10, asked: 3 });
  world.run(1000);
  const asked = boards.filter(({ heard }) => heard.some(({ code }) => code === "RESTARTING"));
  expect(asked).toHaveLength(3);
  expect(a.client().heard[0]?.code).toBe("RESTARTING");
  b.isReady = false;
  world.run(1000);
  expect(a.client().heard[0]?.code).not.toBe("RESTARTING");
  b.isReady = true;

  const isClosing = () => asked.filter(({ connection }) => connection.state === "closing");
  for (let i = 0; i < 300 && isClosing().length === 0; i++) world.run(100);
  const at = boards.indexOf(isClosing()[0] as (typeof boards)[number]);
  a.hub.closed((boards[at] as (typeof boards)[number]).connection, world.nowMs);
  const payload = JSON.stringify({ v: "1", sid: "C", seq: 0, p: "x" });
  watcher.receive({ type: "relay", agent_id: `board-${at}`, payload });
  world.run(500);
  expect(watcher.heard.at(-1)).toMatchObject({ code: "UNAVAILABLE" });
  b.agent(`board-${at}`, 20);
  world.run(500);
  expect(watcher.statuses()).not.toContain(false);

  for (const { connection } of asked) a.hub.closed(connection, world.nowMs);
  expect(a.hub.yetToMove).toBe(0);
  world.run(6000);
  expect(a.hub.yetToMove).toBe(null);
  expect(a.client().heard[0]?.code).not.toBe("RESTARTING");
  expect(a.hub.connectionCount).toBeGreaterThanOrEqual(7);
});

test("a node that stops while it rebalances asks all its peers to move", () => {
  const { world, a } = twoNodes();
  const agents = Array.from({ length: 4 }, (_, i) => a.agent(`pump-${i}`, i + 1));
  world.run(500);
  expect(a.hub.rebalance(50)).toEqual({ links: 4, asked: 2 });
  world.run(1000);
  a.hub.drain();
  expect(a.hub.yetToMove).toBe(null);
  world.run(1000);
  for (const { heard } of agents) expect(heard.at(-1)?.code).toBe("RESTARTING");
});
