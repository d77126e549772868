/**
 * The hub: all connections of one relay and everything that happens between them (section 3 of
 * protocol/README.md). Pure: events and a time in (milliseconds of Unix time that never run
 * backwards), effects out through the ports; no sockets, timers or clocks. The edge calls `tick`
 * every TICK_MS; a late or an extra call is harmless.
 *
 *     a message -> inbound -> routing -> outbox -> the other's link
 *        its `auth` -> authenticator -> peers
 *     time -> heartbeat, outbox, presence, drain        every end -> disconnector
 */
import {
  CLOSE_POLICY,
  CLOSE_TRY_LATER,
  type ErrorCode,
  FRAGMENTS_TIMEOUT_MS,
} from "@blindrelay/protocol";
import { ALONE, type Claim, FREE, type OnlineAgent } from "./bus.ts";
import { MOVING_MS, type RemoteAgents } from "./cluster/remote-agents.ts";
import type { RemoteRouting } from "./cluster/remote-routing.ts";
import type { AgentLabels } from "./connections/access-key.ts";
import { Connection, type Content, isGuest } from "./connections/connection.ts";
import { discharge } from "./connections/hold-queue.ts";
import { concerns, type Revocation } from "./connections/revocations.ts";
import type { Counters } from "./counters.ts";
import type { ConnectionKind } from "./gauges.ts";
import { Authenticator } from "./lifecycle/auth.ts";
import { Disconnector } from "./lifecycle/disconnect.ts";
import { Drain } from "./lifecycle/drain.ts";
import { Heartbeat } from "./lifecycle/heartbeat.ts";
import type { HubLink } from "./link.ts";
import type { AuthResult, HubPort } from "./ports.ts";
import type { ViewChange } from "./presence/access-key-views.ts";
import { Guests } from "./routing/guests.ts";
import { guarded, Inbound, rethrow } from "./routing/inbound.ts";
import { Routing } from "./routing/routing.ts";
import { type HubOptions, HubState } from "./state.ts";

const FRAGMENTS_TOO_SLOW = `The fragments of a message took longer than ${FRAGMENTS_TIMEOUT_MS / 1000} s`;

export class Hub {
  readonly #state: HubState;
  readonly #disconnector: Disconnector;
  readonly #heartbeat: Heartbeat;
  readonly #authenticator: Authenticator;
  readonly #routing: Routing;
  readonly #inbound: Inbound;
  /** What arrives from other nodes: for clients and for agents of this one. */
  readonly remoteRouting: RemoteRouting;
  readonly guests: Guests;
  readonly remoteAgents: RemoteAgents;
  #drain: Drain | null = null;
  /** A drain of some links by a node that stays. `overAt`: when peers are no longer expected. */
  #rebalance: { readonly drain: Drain; links: ReadonlySet<Connection>; overAt: number } | null =
    null;

  constructor(port: HubPort, options: HubOptions, now: number) {
    this.#state = new HubState(port, options, now);
    this.#disconnector = new Disconnector(this.#state);
    this.#heartbeat = new Heartbeat(this.#state, this.#disconnector);
    this.#authenticator = new Authenticator(this.#state, this.#disconnector, this.#heartbeat);
    this.#routing = new Routing(this.#state);
    this.remoteRouting = this.#state.remoteRouting;
    this.remoteAgents = this.#state.remoteAgents;
    this.guests = new Guests(this.#state, this.#disconnector, this.#routing);
    this.#inbound = new Inbound(
      this.#state,
      this.#disconnector,
      this.#authenticator,
      this.#routing,
    );
  }

  // ---- events of a connection

  /** Whether an address may open one more connection; asked before the upgrade. */
  hasRoom(address: string): boolean {
    return this.#state.unauthenticated.hasRoom(address);
  }

  /** A WebSocket was upgraded. Returns the handle for all its later events. */
  connect(link: HubLink, address: string, now: number): Connection {
    const connection = new Connection(link, address, this.#state.limits, now);
    this.#state.counters.connectionsOpened += 1;
    this.#state.connections.add(connection);
    this.#state.gauges.become("waiting", null);
    this.#state.unauthenticated.enter(connection);
    const isOtherReady = this.#state.bus.hasReadyNode();
    // Peers that were asked to move should not land here again, unless there is no other place.
    const drain = this.#drain ?? (isOtherReady ? this.#rebalance?.drain : null) ?? null;
    if (drain === null) {
      this.#heartbeat.awaitAuth(connection);
    } else {
      this.#disconnector.restart(connection, drain.newcomerReconnectInS(isOtherReady), now);
    }
    return connection;
  }

  /** A message arrived; `frame` is what is forwarded, its `length` the size in bytes. */
  receive(connection: Connection, content: Content, frame: Uint8Array, now: number): void {
    this.#inbound.take(connection, content, frame, now);
  }

  /**
   * Whether some fragments of a message have arrived (`begun`), or it is complete now.
   */
  fragmented(connection: Connection, begun: boolean, now: number): void {
    if (!begun) this.#state.fragmented.delete(connection);
    else if (connection.state !== "closing") this.#state.fragmented.set(connection, now);
  }

  /**
   * A connection's frames broke the rule described by `detail`; null: there is no room for them
   * now.
   */
  brokeFraming(connection: Connection, detail: string | null, now: number): void {
    if (connection.state === "closing") return;
    const code = detail === null ? "UNAVAILABLE" : "BAD_MESSAGE";
    const close = detail === null ? CLOSE_TRY_LATER : CLOSE_POLICY;
    this.#state.counters.closedForFraming += 1;
    this.#state.controlMessages.error(connection, code, null, now, detail);
    this.#disconnector.end(connection, close, detail ?? "no room", now);
  }

  /**
   * The peer has ended its side: nothing reaches it any more, though its socket may stay for
   * seconds. What it sent before is still handled; what waits for a look-up, until `closed`.
   */
  ended(connection: Connection, now: number): void {
    // Messages that wait for their turn have it first: thousands at once would delay everybody.
    connection.isGoing = connection.peer !== null && this.#state.scheduler.awaits(connection);
    if (!connection.isGoing) this.#leave(connection, now);
  }

  /** The socket was closed by either side. The last event of a connection. */
  closed(connection: Connection, now: number): void {
    this.#state.connections.delete(connection);
    this.ended(connection, now);
  }

  #leave(connection: Connection, now: number): void {
    const { connections, unauthenticated, gauges, outbox } = this.#state;
    const isGone = !connections.has(connection);
    const waits = connection.held !== null && connection.peer !== null;
    if (connection.state !== "closing" && (isGone || !waits)) {
      this.#disconnector.detach(connection, now);
    }
    if (!isGone) return;
    unauthenticated.leave(connection);
    gauges.gone();
    outbox.drop(connection);
  }

  /** The operating system did not accept everything that the connection's link sent. */
  queues(connection: Connection): void {
    if (this.#state.connections.has(connection)) this.#state.outbox.queues(connection);
  }

  // ---- answers to look-ups; those for connections that left meanwhile are ignored

  /**
   * Whether the answer to a connection's `auth` is still wanted. If the peer is gone it is not: it
   * would replace a link that is alive.
   */
  isAuthenticating(connection: Connection): boolean {
    return connection.state === "authenticating";
  }

  /** `claim`: what the other nodes reported about an agent. */
  authenticated(connection: Connection, result: AuthResult, now: number, claim = FREE): void {
    if (this.isAuthenticating(connection)) {
      this.#authenticator.finish(connection, result, claim, now);
      this.#inbound.resume(connection, now);
    } else if (!result.ok && result.counted) {
      // Otherwise whoever hangs up before the answer could have as many guesses looked up as he
      // likes.
      this.#state.lockout.fail(connection.address, now);
    }
  }

  /** Whether messages from an agent have arrived and wait for their turn. */
  hasHeld(agentId: string): boolean {
    return (this.#state.peers.agent(agentId)?.connection.held ?? null) !== null;
  }

  /** A login on another node asks for an agent. */
  claimAgent(agentId: string, node: string, loginNumber: number, now: number): Claim {
    return this.#authenticator.claimAgent(agentId, node, loginNumber, now);
  }

  /** Another node has a newer login of an agent. */
  yieldAgent(agentId: string, node: string, loginNumber: number, now: number): Claim {
    return this.#authenticator.yieldAgent(agentId, node, loginNumber, now);
  }

  /** The agents of a user that have a link here. */
  agentsOf(userId: string, now: number): OnlineAgent[] {
    const agents = this.#state.peers.find(userId)?.agents.values() ?? [];
    return [...agents].map(({ agentId, loginNumber, onlineSince }) => ({
      agentId,
      loginNumber,
      onlineForMs: now - onlineSince,
    }));
  }

  /** `owner` is null when there is no such agent. */
  ownerFound(connection: Connection, owner: string | null, now: number): void {
    const { unrouted } = connection;
    if (unrouted === null) return;
    const { client, envelope, frame } = unrouted;
    const { ownerCache, revocations, port } = this.#state;
    const agent = { role: "agent", userId: owner, agentId: envelope.agentId } as const;
    if (revocations.since(connection.askedAt, (each) => concerns(each, agent))) {
      // The agent may be gone, or just have a new token.
      connection.askedAt = revocations.mark();
      port.findOwner(connection, envelope.agentId);
      return;
    }
    connection.unrouted = null;
    discharge(connection, frame);
    if (owner !== null) ownerCache.remember(envelope.agentId, owner);
    this.#routing.envelopeFromClient(client, envelope, owner, frame, now);
    this.#inbound.resume(connection, now);
  }

  /** Requests were reserved for a session; null if the store did not answer. */
  reserved(sessionHash: string, requests: number | null, now: number, fail = rethrow): void {
    this.#inbound.reserved(sessionHash, requests, now, fail);
  }

  /** The store did not answer who owns the agent. */
  ownerUnknown(connection: Connection, now: number): void {
    const { unrouted } = connection;
    if (unrouted !== null) {
      connection.unrouted = null;
      discharge(connection, unrouted.frame);
      this.#state.controlMessages.refuse(connection, "UNAVAILABLE", unrouted.envelope, now);
      this.#inbound.resume(connection, now);
    }
  }

  // ---- time

  /** The next turn for users whose messages had to wait, and for presence news. */
  turn(now: number, fail = rethrow): void {
    const { scheduler, presence } = this.#state;
    scheduler.next((connection) =>
      guarded(connection, fail, () => {
        const { peer } = connection;
        if (isGuest(peer)) {
          this.guests.resume(peer, now);
          return;
        }
        try {
          this.#inbound.resume(connection, now);
        } finally {
          if (connection.isGoing) this.ended(connection, now);
        }
      }),
    );
    presence.turn(now);
  }

  tick(now: number): void {
    const { outbox, presence, requestIds, requestCounts, lockout, counters } = this.#state;
    this.#heartbeat.tick(now);
    outbox.tick(now, (connection) => {
      counters.closedForSlowness += 1;
      this.#disconnector.end(connection, CLOSE_TRY_LATER, "slow consumer", now);
    });
    this.#endFragmented(now);
    presence.tick(now);
    this.remoteRouting.tick(now);
    this.remoteAgents.tick(now);
    this.#tellViews(this.#state.views.tick(now), now);
    requestIds.expire(now);
    requestCounts.tick(now);
    lockout.expire(now);
    (this.#drain ?? this.#rebalance?.drain)?.tick(now, {
      tell: (connection, inS) => this.#disconnector.tellRestart(connection, inS, now),
      restart: (connection, inS) => this.#disconnector.restart(connection, inS, now),
      close: (connection) => this.#disconnector.endRestart(connection, now),
    });
    this.#endRebalance(now);
  }

  /** A board whose link has ended last is between two nodes for a while. */
  #endRebalance(now: number): void {
    if (this.#rebalance === null) return;
    const { drain, overAt } = this.#rebalance;
    if (!drain.isOver) this.#rebalance.overAt = now + MOVING_MS;
    else if (now >= overAt) this.#stopRebalance();
  }

  #stopRebalance(): void {
    this.#rebalance = null;
    this.#state.rebalancing = false;
  }

  /** Oldest first. */
  #endFragmented(now: number): void {
    for (const [connection, since] of this.#state.fragmented) {
      if (now - since < FRAGMENTS_TIMEOUT_MS) return;
      this.brokeFraming(connection, FRAGMENTS_TOO_SLOW, now);
    }
  }

  // ---- commands; `code` is sent to the peers concerned

  isOnline(agentId: string): boolean {
    return this.#state.peers.agent(agentId) !== undefined;
  }

  /**
   * Whether a user's agent is online on some node, as the user's clients here were told; null: none
   * of them was told lately.
   */
  isOnlineAnywhere(userId: string, agentId: string): boolean | null {
    const { peers, presence } = this.#state;
    const user = peers.find(userId);
    if (this.isOnline(agentId) || user?.abroad.has(agentId)) return true;
    return user !== undefined && presence.isJustGone(user, agentId) ? false : null;
  }

  /**
   * Ends an agent's connection, for example after its token was rotated. Its bindings stay for its
   * next one.
   */
  endAgent(agentId: string, code: ErrorCode, now: number): void {
    this.#revoke({ kind: "agent", agentId }, code, now);
  }

  /** Ends a deleted agent's connection and removes everything that refers to it. */
  forgetAgent(agentId: string, code: ErrorCode, now: number): void {
    this.endAgent(agentId, code, now);
    this.#tellViews(this.#state.views.forget(agentId), now);
    this.#state.ownerCache.forget(agentId);
    for (const user of this.#state.peers.users()) {
      user.bindings.dropAgent(agentId);
    }
  }

  /** Ends the connections of a user's clients, after the account token or the password changed. */
  endClients(userId: string, code: ErrorCode, now: number): void {
    this.#revoke({ kind: "clients", userId }, code, now);
  }

  /** Ends all connections of a user, including agents, after the user was disabled or deleted. */
  endUser(userId: string, code: ErrorCode, now: number): void {
    this.#state.ownerCache.forgetUser(userId);
    this.#revoke({ kind: "user", userId }, code, now);
  }

  endSession(sessionHash: string, code: ErrorCode, now: number): void {
    this.#revoke({ kind: "session", sessionHash }, code, now);
  }

  /** Ends the connections of an access key that was removed. */
  endKey(keyId: string, code: ErrorCode, now: number): void {
    this.#revoke({ kind: "key", keyId }, code, now);
  }

  /** An agent's labels changed, or it is new. */
  relabel(agentId: string): void {
    this.#state.views.changed(agentId);
  }

  /** `agent` is null when there is none. */
  labelsFound(agentId: string, agent: AgentLabels | null, now: number): void {
    this.#tellViews(this.#state.views.found(agentId, agent), now);
  }

  /** The store did not answer. */
  labelsUnknown(agentId: string, now: number): void {
    this.#tellViews(this.#state.views.lost(agentId), now);
  }

  #tellViews(changes: readonly ViewChange[], now: number): void {
    const { views, presence } = this.#state;
    for (const change of changes) presence.announceIn(change, views.clientsOf(change.view), now);
  }

  /**
   * Begins the shutdown: closes all connections over the next ticks, and new ones at once.
   * `leftMs`: until the process ends.
   */
  drain(leftMs?: number): void {
    const { connections, bus } = this.#state;
    this.#stopRebalance();
    this.#state.moving = bus !== ALONE;
    this.#drain ??= new Drain(connections, this.#state.moving, leftMs);
  }

  /**
   * Asks a share of the peers, old and new links alike, to move to other nodes, as in a drain.
   * For a node of a cluster that neither drains nor does this already.
   */
  rebalance(percent: number): { links: number; asked: number } {
    const online = [...this.#state.connections].filter(({ state }) => state === "online");
    const links = new Set(online.filter((_, at) => isChosen(at, percent)));
    this.#rebalance = { drain: new Drain(links, true), links, overAt: 0 };
    this.#state.rebalancing = true;
    return { links: online.length, asked: links.size };
  }

  /** How many of the peers that were asked to move have not left yet; null: that is over. */
  get yetToMove(): number | null {
    if (this.#rebalance === null) return null;
    const { connections } = this.#state;
    let count = 0;
    for (const link of this.#rebalance.links) if (connections.has(link)) count += 1;
    return count;
  }

  #revoke(revocation: Revocation, code: ErrorCode, now: number): void {
    const { revocations, peers } = this.#state;
    revocations.add(revocation);
    for (const { connection } of peers.concerned(revocation)) {
      this.#disconnector.endWith(connection, code, null, now);
    }
  }

  // ---- figures

  get counters(): Counters {
    return this.#state.counters;
  }

  /** Connections with an open socket, including ended ones; 0 means that a drain is complete. */
  get connectionCount(): number {
    return this.#state.connections.size;
  }

  /** Current figures. Only connections with a queue are visited. */
  stats(): HubStats {
    const { gauges, peers, requestIds, requestCounts, counters, outbox } = this.#state;
    return {
      connections: { ...gauges.connections },
      agentsOnline: peers.agentCount,
      guests: peers.guestCount,
      queueBytes: outbox.queuedBytes(),
      slowConnections: outbox.overCount,
      bindings: gauges.bindings,
      requestIds: requestIds.size,
      sessions: requestCounts.size,
      counters,
    };
  }
}

/** Spreads a share evenly over a list; over the whole of it, the share is rounded once. */
const isChosen = (at: number, percent: number): boolean =>
  Math.round(((at + 1) * percent) / 100) > Math.round((at * percent) / 100);

export interface HubStats {
  readonly connections: Readonly<Record<ConnectionKind, number>>;
  agentsOnline: number;
  /** Clients on other nodes that call agents of this one. */
  guests: number;
  /** Bytes that the operating system has not accepted yet, over all connections. */
  queueBytes: number;
  slowConnections: number;
  bindings: number;
  requestIds: number;
  sessions: number;
  counters: Counters;
}
