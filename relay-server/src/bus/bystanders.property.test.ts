/**
 * What others do changes nothing for an account: the same random history of its clients and agents
 * is played once alone and once beside holders of its access keys, another user and strangers, who
 * use up all that they may, on one node and on two. Each of its links must hear the same. The hub's
 * limits are small here, so that a short history reaches all of them.
 */
import fc from "fast-check";
import { expect, it, vi } from "vitest";
import { ALONE } from "../core/bus.ts";
import { TICK_MS } from "../core/limits/limits.ts";
import {
  authOf,
  envelope,
  type Fields,
  MemoryStore,
  packet,
  type VirtualPeer,
  World,
} from "../core/testing/test-hub.ts";
import { Cluster, type Shared } from "./cluster.ts";
import { BusSide, MemoryBus } from "./testing/memory-bus.ts";

vi.mock("../core/limits/limits.ts", async (original) => ({
  ...(await original<typeof import("../core/limits/limits.ts")>()),
  QUEUED_BYTES_PER_USER: 2_000,
  SHORT_QUEUE_BYTES: 600,
  RECOUNT_BYTES: 0,
  HELD_BYTES: 2_000,
  HELD_BYTES_PER_USER: 3_000,
  FREE_HELD_BYTES: 400,
  UNPAUSED_BYTES: 1_000,
  TURN_COST: 4,
  ALONE_TURN_COST: 8,
  UNAUTHENTICATED_TURN_COST: 6,
  MAX_BINDINGS_PER_USER: 6,
  MAX_REQUEST_IDS_PER_USER: 6,
  FREE_PER_CONNECTION: 1,
  MAX_KNOWN_OWNERS: 4,
  NEWS_PER_TURN: 2,
  NEWS_AT_ONCE: 4,
  NEWS_KEPT: 3,
  SNAPSHOT_BATCH: 2,
  SNAPSHOTS_AT_ONCE: 2,
}));

const LIMITS = { outboxBytes: 1_500, clientsPerUser: 4, waitingPerAddress: 4 };
const OWN = ["ann-1", "ann-2"];
/** Of the account, but with the holders of its keys alone. */
const THEIRS = "ann-3";
const OTHER = "bob-1";
const KEYS = ["key:every", "key:hall"];
const FIRSTS = ["C", "D", "E"];

const pick = fc.nat(1000);

const own = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("connect" as const), n: pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("connect agent" as const), n: pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("hang up" as const), n: pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("stall" as const), n: pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("read" as const), n: pick }) },
  {
    weight: 20,
    arbitrary: fc.record({
      do: fc.constantFrom("packet", "bare packet", "request"),
      n: pick,
      agent: pick,
      first: pick,
      bytes: fc.constantFrom(10, 10, 300),
    }),
  },
);

const theirs = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("come" as const), n: pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("go", "stop reading"), n: pick }) },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constantFrom("bind", "request", "bare", "envelope to nobody", "garbage", "answer"),
      n: pick,
      times: fc.integer({ min: 1, max: 12 }),
      bytes: fc.constantFrom(10, 300, 900),
    }),
  },
);

const step = fc.oneof(
  { weight: 10, arbitrary: fc.record({ who: fc.constant("own" as const), act: own }) },
  { weight: 10, arbitrary: fc.record({ who: fc.constant("theirs" as const), act: theirs }) },
  {
    weight: 3,
    arbitrary: fc.record({
      who: fc.constant("all" as const),
      act: fc.record({ do: fc.constantFrom("wait", "slow store", "store answers"), n: pick }),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A link of the account, and what it has heard. */
interface Own {
  readonly peer: VirtualPeer;
  readonly agentId: string | null;
  readonly heard: string[];
  /** Agents, by its last news. */
  readonly online: Set<string>;
  isIn: boolean;
}

/** Nodes that share a store, on a bus that loses nothing. */
class Nodes {
  readonly all: readonly World[];
  readonly store = new MemoryStore();
  readonly #bus = new MemoryBus();
  readonly #clusters: Cluster[] = [];
  #timers: { atMs: number; fn: () => void }[] = [];

  constructor(count: number) {
    const one = () => new World(LIMITS, ALONE, false, this.store);
    this.all = count === 1 ? [one()] : Array.from({ length: count }, (_, n) => this.#add(`n${n}`));
    this.advance(2000);
  }

  #add(node: string): World {
    const nowMs = () => world.now;
    const cluster = new Cluster({
      ...{ transport: new BusSide(this.#bus), node, prefix: "p", maxMessageBytes: 65_536, nowMs },
      log: {
        error: (fields, message) => {
          throw new Error(message, { cause: fields });
        },
      },
      after: (ms, fn) => {
        const timer = { atMs: nowMs() + ms, fn };
        this.#timers.push(timer);
        return () => {
          this.#timers = this.#timers.filter((each) => each !== timer);
        };
      },
    });
    const world = new World(LIMITS, cluster, false, this.store);
    const shared = { lockout: world.lockout, usernameLockout: {}, isReady: () => true };
    cluster.attach(world.hub, shared as unknown as Shared);
    this.#clusters.push(cluster);
    return world;
  }

  settle(): void {
    for (let isBusy = true; isBusy; ) {
      isBusy = this.#bus.deliver();
      for (const world of this.all) isBusy = world.settle() || isBusy;
    }
  }

  advance(ms: number): void {
    for (let left = ms; left > 0; left -= TICK_MS) {
      for (const world of this.all) world.advance(Math.min(left, TICK_MS));
      const { now } = this.all[0] as World;
      const due = this.#timers.filter(({ atMs }) => atMs <= now);
      this.#timers = this.#timers.filter(({ atMs }) => atMs > now);
      for (const { fn } of due) fn();
      if (left % 1000 < TICK_MS) for (const cluster of this.#clusters) cluster.tick();
      this.settle();
    }
  }
}

class Play {
  readonly #nodes: Nodes;
  readonly #own: Own[] = [];
  readonly #theirs: VirtualPeer[] = [];
  readonly #withOthers: boolean;
  /** What its clients have called their sids and requests. */
  readonly #names: string[] = [];
  #number = 0;

  constructor(nodes: number, withOthers: boolean) {
    this.#nodes = new Nodes(nodes);
    this.#withOthers = withOthers;
    const [first] = this.#nodes.all as [World];
    first.user("ann", ...OWN, THEIRS);
    first.user("bob", OTHER);
    const { keys, labels } = this.#nodes.store;
    keys.set("every", { userId: "ann", site: null, expiresAtMs: null });
    keys.set("hall", { userId: "ann", site: "hall", expiresAtMs: null });
    labels.set(THEIRS, { site: "hall" });
    // Otherwise somebody else's client may be the reason for which a node already knows the agents.
    if (nodes > 1) for (const world of this.#nodes.all) world.client("ann");
    // Always there, since the account's clients hear of it.
    const peer = first.connect();
    peer.say(authOf(THEIRS));
    this.#nodes.settle();
    this.#theirs.push(peer);
  }

  /** What each link of the account heard. */
  run(steps: readonly Step[]): unknown[] {
    for (const { who, act } of steps) {
      if (who === "own") this.#act(act);
      else if (who === "all") this.#happen(act);
      else if (this.#withOthers) this.#interfere(act);
      this.#nodes.settle();
      this.#listen();
    }
    this.#happen({ do: "store answers", n: 0 });
    for (const { peer } of this.#own) peer.read();
    this.#happen({ do: "wait", n: 1000 });
    this.#listen();
    return this.#own.map(({ peer, heard, online, agentId }) => ({
      agentId,
      heard,
      // A link that has ended may not have heard all.
      online: isOpen(peer) ? [...online].sort() : [],
      closed: peer.closed,
      paused: isOpen(peer) && peer.paused,
    }));
  }

  #happen({ do: what, n }: { do: "wait" | "slow store" | "store answers"; n: number }): void {
    if (what === "wait") this.#nodes.advance(n * 3);
    for (const world of this.#nodes.all) {
      if (what !== "wait") world.slowStore = what === "slow store";
    }
    this.#nodes.settle();
  }

  #act(act: Extract<Step, { who: "own" }>["act"]): void {
    switch (act.do) {
      case "connect": {
        const auth = { type: "auth", api_token: "acct:ann", client_type: "client" };
        this.#connect(isRare(act.n) ? 0 : 1, { ...auth, presence: true }, null);
        return;
      }
      case "connect agent": {
        // What comes first, a packet to it or its login, is for the store to decide.
        if (this.#nodes.all[0]?.slowStore) return;
        const agentId = at(OWN, act.n);
        this.#connect(isRare(act.n) ? 1 : 0, authOf(agentId), agentId);
        return;
      }
    }
    const living = this.#own.filter(({ peer, isIn }) => isIn && isOpen(peer));
    if (living.length === 0) return;
    const link = at(living, act.n);
    const { peer, agentId } = link;
    if (act.do === "hang up") peer.hangUp();
    else if (act.do === "stall") peer.stalled = true;
    else if (act.do === "read") peer.read();
    else {
      this.#number += 1;
      const p = `${this.#number}`.padStart(act.bytes, "A");
      // Of two links that bind one name, the store would decide which comes first.
      const own = `${at(FIRSTS, act.first)}${this.#own.indexOf(link)}`;
      if (agentId === null) this.#names.push(own);
      const first = agentId === null ? own : (at(this.#names, act.first) ?? own);
      const to = { agent_id: agentId ?? at(OWN, act.agent) };
      if (act.do === "bare packet") peer.say(packet(`${first}.A`, this.#number, p));
      else if (act.do === "packet") peer.say(envelope(packet(first, this.#number, p), to));
      else peer.say(envelope(`plain ${p}`, { ...to, request_id: first }));
    }
  }

  /** `node`: where there are several, agents are mostly on 0 and clients on 1. */
  #connect(node: number, auth: Fields, agentId: string | null): void {
    const peer = at(this.#nodes.all, node).connect();
    this.#own.push({ peer, agentId, heard: [], online: new Set(), isIn: false });
    peer.say(auth);
  }

  #interfere(act: Extract<Step, { who: "theirs" }>["act"]): void {
    if (act.do === "come") {
      const address = `198.51.100.${act.n % 3}`;
      const world = at(this.#nodes.all, isRare(act.n) ? 0 : 1);
      if (!world.hub.hasRoom(address)) return;
      const peer = world.connect(address);
      this.#theirs.push(peer);
      const client = { type: "auth", client_type: "client", presence: act.n % 4 === 0 };
      const who = act.n % 6;
      if (who < 3) peer.say({ ...client, api_token: at(KEYS, act.n) });
      else if (who === 3) peer.say({ ...client, api_token: "acct:bob" });
      else if (who === 4) peer.say(authOf(OTHER));
      else if (act.n % 4 === 1) peer.say({ ...client, api_token: "key:wrong" });
      return;
    }
    const living = this.#theirs.filter(isOpen);
    if (living.length === 0) return;
    const peer = at(living, act.n);
    if ("times" in act) {
      for (let i = 0; i < act.times && isOpen(peer); i++) peer.say(this.#their(act, i));
    } else if (peer.connection.peer?.role !== "agent") {
      // An agent's queue is its account's, whoever fills it.
      if (act.do === "go") peer.hangUp();
      else peer.stalled = true;
    }
  }

  #their({ do: what, n, bytes }: { do: string; n: number; bytes: number }, i: number): Fields {
    const p = "A".repeat(bytes);
    const agent_id = n % 5 === 0 ? OTHER : THEIRS;
    const name = `their${n}-${i}`;
    switch (what) {
      case "bind":
        return envelope(packet(name, 1, p), { agent_id });
      case "request":
        return envelope(`plain ${p}`, { agent_id, request_id: name });
      case "bare":
        return packet(`${name}.A`, 1, p);
      case "answer":
        return packet(`their${n - (n % 10)}-${i}.A`, 1, p);
      case "envelope to nobody":
        return envelope(packet(name, 1, p), { agent_id: `nobody-${name}` });
      default:
        return { type: `nonsense ${p}` };
    }
  }

  #listen(): void {
    for (const link of this.#own) {
      for (const message of link.peer.take()) {
        if (message.type === "auth_response") link.isIn = message.status === "authenticated";
        const { session_token: _, ...said } = message;
        const { agent_id: agentId } = message;
        if (message.type !== "agent_status") link.heard.push(JSON.stringify(said));
        else if (agentId === THEIRS) continue;
        else if (message.online === true) link.online.add(String(agentId));
        else link.online.delete(String(agentId));
      }
    }
  }
}

const isOpen = ({ closed, hungUp }: VirtualPeer): boolean => closed === null && !hungUp;

const isRare = (n: number): boolean => n % 5 === 0;

const at = <T>(list: readonly T[], n: number): T => list[n % list.length] as T;

it.each([
  ["one node", 1, 1000],
  ["two nodes", 2, 600],
])("lets an account hear the same, whatever others do beside it on %s", (_, nodes, numRuns) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 120 }), (steps) => {
      expect(new Play(nodes, true).run(steps)).toEqual(new Play(nodes, false).run(steps));
    }),
    { numRuns },
  );
});
