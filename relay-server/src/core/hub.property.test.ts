/**
 * Random sequences of everything that can happen to a hub, checked against its invariants: each
 * message is delivered once or counted as dropped, nothing reaches another user, a packet from an
 * agent reaches only clients that bound its sid to that agent, and no table outgrows its bound.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  authOf,
  envelope,
  type Fields,
  hashOf,
  packet,
  type VirtualPeer,
  World,
} from "./testing/test-hub.ts";

const USERS = ["ann", "bob"];
const AGENTS = ["ann-1", "ann-2", "bob-1"];
const FIRSTS = ["C", "D"];
const REQUEST_IDS = ["r", "s"];
const LIMITS = { maxRequests: 25, outboxBytes: 2_000, rateBurst: 15, ratePerSecond: 5 };

const ownerOf = (agentId: string): string => agentId.split("-")[0] as string;
const pick = fc.nat(1000);

type Action =
  | { do: "connect agent" | "connect client" | "reconnect client"; n: number }
  | { do: "hang up" | "stall" | "read" | "silence" | "bad message"; n: number }
  | { do: "envelope"; n: number; agent: number; first: number; request: number; plain: boolean }
  | { do: "bare packet"; n: number; first: number }
  | { do: "wait"; ms: number }
  | { do: "slow store" | "store answers" | "store at hand" }
  | { do: "delete agent" | "end session"; n: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("connect agent" as const), n: pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("connect client" as const), n: pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("reconnect client" as const), n: pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom("hang up", "stall", "read", "silence", "bad message"),
      n: pick,
    }),
  },
  {
    weight: 15,
    arbitrary: fc.record({
      do: fc.constant("envelope" as const),
      n: pick,
      agent: pick,
      first: pick,
      request: pick,
      plain: fc.boolean(),
    }),
  },
  {
    weight: 15,
    arbitrary: fc.record({ do: fc.constant("bare packet" as const), n: pick, first: pick }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.nat(100_000) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom("slow store", "store answers", "store at hand") }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom("delete agent", "end session"), n: pick }),
  },
);

/** A peer, its identity, and what the test knows about it. */
interface Player {
  peer: VirtualPeer;
  user: string;
  agentId: string | null;
  session: string;
}

class Game {
  readonly world = new World(LIMITS);
  readonly players: Player[] = [];
  /** The sender of each message, by its number. */
  readonly senders: Player[] = [];
  /** (user, first part, agent) that some client asked to bind. */
  readonly asked = new Set<string>();
  deliveries = 0;
  readonly #delivered = new Set<number>();

  constructor() {
    for (const agentId of AGENTS) this.world.user(ownerOf(agentId), agentId);
  }

  play(step: Action): void {
    switch (step.do) {
      case "connect agent": {
        const agentId = at(AGENTS, step.n);
        this.#connect(authOf(agentId), ownerOf(agentId), agentId);
        break;
      }
      case "connect client": {
        const user = at(USERS, step.n);
        const auth = { type: "auth", api_token: `acct:${user}`, client_type: "client" };
        this.#connect({ ...auth, presence: step.n % 2 === 0 }, user, null);
        break;
      }
      case "reconnect client": {
        const known = this.players.filter((each) => each.agentId === null && each.session !== "");
        if (known.length > 0) {
          const { session, user } = at(known, step.n);
          const auth = { type: "auth", session_token: session, client_type: "client" };
          this.#connect(auth, user, null);
        }
        break;
      }
      case "envelope":
        this.#with(step.n, (player) => {
          const agentId = player.agentId ?? at(AGENTS, step.agent);
          const first = at(FIRSTS, step.first);
          const more: Fields = { agent_id: agentId, request_id: at(REQUEST_IDS, step.request) };
          if (player.agentId !== null && step.agent % 2 === 0) delete more.agent_id;
          if (player.agentId === null) this.asked.add(`${player.user} ${first} ${agentId}`);
          const number = this.senders.push(player) - 1;
          const payload = step.plain ? `no packet ${number}` : packet(first, number);
          player.peer.say({ ...envelope(payload, more), number });
        });
        break;
      case "bare packet":
        this.#with(step.n, (player) => {
          const number = this.senders.push(player) - 1;
          player.peer.say({ ...packet(`${at(FIRSTS, step.first)}.A`, number), number });
        });
        break;
      case "hang up":
        this.#with(step.n, ({ peer }) => peer.hangUp());
        break;
      case "stall":
        this.#with(step.n, ({ peer }) => {
          peer.stalled = true;
        });
        break;
      case "read":
        this.#with(step.n, ({ peer }) => peer.read());
        break;
      case "silence":
        this.#with(step.n, ({ peer }) => {
          peer.silent = true;
        });
        break;
      case "bad message":
        this.#with(step.n, ({ peer }) => {
          peer.say("{");
        });
        break;
      case "wait":
        this.world.advance(step.ms);
        break;
      case "slow store":
        this.world.slowStore = true;
        this.world.storeAtHand = false;
        break;
      case "store answers":
      case "store at hand":
        this.world.slowStore = false;
        this.world.settle();
        this.world.storeAtHand = step.do === "store at hand";
        break;
      case "delete agent": {
        const agentId = at(AGENTS, step.n);
        this.world.hub.forgetAgent(agentId, "REVOKED", this.world.now);
        break;
      }
      case "end session":
        this.#with(step.n, ({ session }) => {
          this.world.hub.endSession(hashOf(session), "REVOKED", this.world.now);
        });
        break;
    }
    for (const player of this.players) this.#checkInbox(player);
    this.#checkTables();
  }

  /** When nothing is in flight any more, every message is accounted for. */
  finish(): void {
    this.play({ do: "store answers" });
    const { received, forwardedToAgents, forwardedToClients, dropped } = this.world.hub.counters;
    const lost = [...dropped.values()].reduce((sum, count) => sum + count, 0);
    expect(forwardedToAgents + forwardedToClients).toBe(this.deliveries);
    expect(received).toBe(this.deliveries + lost);
    for (const { peer } of this.players) peer.hangUp();
    this.world.advance(200_000);
    expect(this.world.hub.stats()).toMatchObject({
      agentsOnline: 0,
      bindings: 0,
      requestIds: 0,
      sessions: 0,
      slowConnections: 0,
    });
    expect(this.world.hub.connectionCount).toBe(0);
  }

  #connect(auth: Fields, user: string, agentId: string | null): void {
    const peer = this.world.connect();
    this.players.push({ peer, user, agentId, session: "" });
    peer.say(auth);
  }

  /** Does something with a player whose link is still open. */
  #with(n: number, act: (player: Player) => void): void {
    const living = this.players.filter(({ peer }) => peer.closed === null && !peer.hungUp);
    if (living.length > 0) act(at(living, n));
  }

  #checkInbox(player: Player): void {
    for (const message of player.peer.take()) {
      if (message.type === "auth_response" && message.status === "authenticated") {
        player.session = message.session_token as string;
      }
      if (message.type === "agent_status") {
        expect(ownerOf(message.agent_id as string)).toBe(player.user);
      }
      if (typeof message.number === "number") this.#checkDelivery(player, message.number, message);
    }
  }

  #checkDelivery(to: Player, number: number, message: Fields): void {
    this.deliveries += 1;
    expect(this.#delivered.has(number)).toBe(false);
    this.#delivered.add(number);
    const from = this.senders[number] as Player;
    expect(from.user).toBe(to.user);
    expect(from.agentId === null).toBe(to.agentId !== null);
    const sid = sidOf(message);
    if (sid !== null) {
      const agentId = from.agentId ?? to.agentId;
      expect(this.asked).toContain(`${to.user} ${sid.split(".")[0]} ${agentId}`);
    }
    if (message.type === "relay") {
      expect(message.agent_id).toBe(from.agentId ?? to.agentId);
    }
  }

  #checkTables(): void {
    const stats = this.world.hub.stats();
    expect(stats.bindings).toBeLessThanOrEqual(USERS.length * FIRSTS.length);
    expect(stats.requestIds).toBeLessThanOrEqual(AGENTS.length * REQUEST_IDS.length);
    expect(stats.agentsOnline).toBeLessThanOrEqual(AGENTS.length);
    // Updated as things change, and equal to a fresh count.
    const there = this.world.peers.filter(({ hungUp }) => !hungUp);
    const count = (wanted: string): number =>
      there.filter(({ connection: { state, peer } }) =>
        state === "closing" ? wanted === state : wanted === (peer?.clientType ?? "waiting"),
      ).length;
    const { client, agent, firmware, waiting, closing } = stats.connections;
    expect([client, agent, firmware, waiting, closing]).toEqual(
      ["client", "agent", "firmware", "waiting", "closing"].map(count),
    );
    const bound = there.flatMap(({ connection: { peer } }) =>
      peer?.role === "client" ? [...peer.bound] : [],
    );
    expect(stats.bindings).toBe(bound.length);
    for (const { peer } of this.players) {
      expect(peer.queued()).toBeLessThanOrEqual(LIMITS.outboxBytes);
    }
  }
}

const at = <T>(list: readonly T[], n: number): T => list[n % list.length] as T;

const sidOf = (message: Fields): string | null => {
  if (typeof message.sid === "string") return message.sid;
  const { payload } = message;
  return typeof payload === "string" && payload.startsWith("{") ? JSON.parse(payload).sid : null;
};

it("conserves messages, keeps users apart and its state bounded, whatever happens", () => {
  fc.assert(
    fc.property(fc.array(action, { minLength: 20, maxLength: 120 }), (steps) => {
      const game = new Game();
      for (const step of steps) game.play(step);
      game.finish();
    }),
    { numRuns: 300 },
  );
});
