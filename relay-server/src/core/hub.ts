/**
 * The hub: all connections of one relay and everything that happens between them (section 3 of
 * protocol/README.md). Pure: events and a time in (milliseconds of Unix time that never run
 * backwards), effects out through the ports; no sockets, timers or clocks. The edge calls `tick`
 * every TICK_MS; a late or an extra call is harmless.
 *
 *     a message -> intake -> routing -> outbox -> the other's link
 *        its `auth` -> entrance (gate) -> peers
 *     time -> heartbeat, outbox, presence, drain        every end -> ends
 */
import { CLOSE_TRY_LATER, type ErrorCode } from "@blindrelay/protocol";
import { Connection } from "./connection.ts";
import type { Counters } from "./counters.ts";
import { Drain } from "./drain.ts";
import { Ends } from "./ends.ts";
import { Entrance } from "./entrance.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Intake } from "./intake.ts";
import type { AuthResult, HubPort, LinkPort } from "./ports.ts";
import { concerns, type Revocation } from "./revocations.ts";
import { Routing } from "./routing.ts";
import { type HubOptions, Tables } from "./tables.ts";

export class Hub {
  readonly #tables: Tables;
  readonly #ends: Ends;
  readonly #heartbeat: Heartbeat;
  readonly #entrance: Entrance;
  readonly #routing: Routing;
  readonly #intake: Intake;
  #drain: Drain | null = null;

  constructor(port: HubPort, options: HubOptions, now: number) {
    this.#tables = new Tables(port, options, now);
    this.#ends = new Ends(this.#tables);
    this.#heartbeat = new Heartbeat(this.#tables, this.#ends);
    this.#entrance = new Entrance(this.#tables, this.#ends, this.#heartbeat);
    this.#routing = new Routing(this.#tables);
    this.#intake = new Intake(this.#tables, this.#ends, this.#entrance, this.#routing);
  }

  // ---- events of a connection

  /** Whether an address may open one more connection; asked before the upgrade. */
  hasRoom(address: string): boolean {
    return this.#tables.lobby.hasRoom(address);
  }

  /** A WebSocket was upgraded. The answer is the handle for everything that happens on it. */
  connect(link: LinkPort, address: string, now: number): Connection {
    const connection = new Connection(link, address, this.#tables.limits, now);
    this.#tables.counters.connectionsOpened += 1;
    this.#tables.connections.add(connection);
    this.#tables.lobby.enter(connection);
    if (this.#drain === null) {
      this.#heartbeat.awaitAuth(connection);
    } else {
      this.#ends.restart(connection, this.#drain.nextReconnectInS(), now);
    }
    return connection;
  }

  /**
   * A message arrived. `text` is null when it is no text (binary, or not UTF-8) and may be null
   * when it is over the limit; `frame` is what is forwarded, its `length` the size in bytes.
   */
  receive(connection: Connection, text: string | null, frame: Uint8Array, now: number): void {
    connection.pingsUnanswered = 0;
    this.#intake.take(connection, text, frame, now);
  }

  /** A pong control frame arrived: as good as a message that says so. */
  heard(connection: Connection): void {
    connection.pingsUnanswered = 0;
  }

  /** The socket is gone, whoever closed it. The last event of a connection. */
  closed(connection: Connection, now: number): void {
    this.#tables.connections.delete(connection);
    this.#tables.lobby.leave(connection);
    if (connection.state !== "closing") {
      this.#ends.detach(connection, now);
    }
  }

  // ---- answers to look-ups; those for connections that left meanwhile are ignored

  authenticated(connection: Connection, result: AuthResult, now: number): void {
    if (connection.state === "authenticating") {
      this.#entrance.finish(connection, result, now);
      this.#intake.resume(connection, now);
    }
  }

  /** `owner` is null when there is no such agent. */
  ownerFound(connection: Connection, owner: string | null, now: number): void {
    const { unrouted, peer } = connection;
    if (unrouted === null || peer?.role !== "client") {
      return;
    }
    connection.unrouted = null;
    const { envelope, frame } = unrouted;
    const { owners, revocations } = this.#tables;
    const deleted = revocations.since(
      connection.askedAt,
      (revocation) => revocation.kind === "agent" && revocation.agentId === envelope.agentId,
    );
    if (owner !== null && !deleted) {
      owners.remember(envelope.agentId, owner);
    }
    this.#routing.envelopeFromClient(peer, envelope, deleted ? null : owner, frame, now);
    this.#intake.resume(connection, now);
  }

  /** The store could not tell who owns the agent. */
  ownerUnknown(connection: Connection, now: number): void {
    const { unrouted } = connection;
    if (unrouted !== null) {
      connection.unrouted = null;
      this.#tables.notices.refuse(connection, "INTERNAL", unrouted.envelope, now);
      this.#intake.resume(connection, now);
    }
  }

  // ---- time

  tick(now: number): void {
    const { outbox, presence, requestIds, sessions, lockout, counters } = this.#tables;
    this.#heartbeat.tick(now);
    outbox.tick(now, (connection) => {
      counters.closedForSlowness += 1;
      this.#ends.end(connection, CLOSE_TRY_LATER, "slow consumer", now);
    });
    presence.tick(now);
    requestIds.expire(now);
    sessions.tick(now);
    lockout.expire(now);
    this.#drain?.tick((connection, reconnectInS) =>
      this.#ends.restart(connection, reconnectInS, now),
    );
  }

  // ---- commands; `code` is what the peers concerned are told

  isOnline(agentId: string): boolean {
    return this.#tables.peers.agent(agentId) !== undefined;
  }

  /** Ends an agent's connection: its token was rotated, say. Its bindings wait for its return. */
  endAgent(agentId: string, code: ErrorCode, now: number): void {
    this.#revoke({ kind: "agent", agentId }, code, now);
  }

  /** The agent was deleted: ends its connection and everything that pointed to it. */
  forgetAgent(agentId: string, code: ErrorCode, now: number): void {
    this.endAgent(agentId, code, now);
    this.#tables.owners.forget(agentId);
    for (const user of this.#tables.peers.users()) {
      user.bindings.dropAgent(agentId);
    }
  }

  /** Ends the connections of a user's clients: the account token or the password changed. */
  endClients(userId: string, code: ErrorCode, now: number): void {
    this.#revoke({ kind: "clients", userId }, code, now);
  }

  /** Ends all connections of a user, agents too: the user was disabled or deleted. */
  endUser(userId: string, code: ErrorCode, now: number): void {
    this.#revoke({ kind: "user", userId }, code, now);
  }

  endSession(sessionHash: string, code: ErrorCode, now: number): void {
    this.#revoke({ kind: "session", sessionHash }, code, now);
  }

  /** Begins the shutdown: everybody is sent away over the next ticks, newcomers at once. */
  drain(): void {
    this.#drain ??= new Drain(this.#tables.connections);
  }

  #revoke(revocation: Revocation, code: ErrorCode, now: number): void {
    this.#tables.revocations.add(revocation);
    for (const connection of this.#tables.connections) {
      const { peer, state } = connection;
      if (peer !== null && state !== "closing" && concerns(revocation, peer)) {
        this.#ends.endWith(connection, code, null, now);
      }
    }
  }

  // ---- figures

  get counters(): Counters {
    return this.#tables.counters;
  }

  /** Connections whose socket is not gone yet, ended ones included; 0 says that a drain is done. */
  get connectionCount(): number {
    return this.#tables.connections.size;
  }

  /** Figures of this moment; costs a walk over all connections. */
  stats(): HubStats {
    const { connections, peers, requestIds, sessions, lockout, counters, outbox } = this.#tables;
    const stats: HubStats = {
      connections: { client: 0, agent: 0, firmware: 0, waiting: 0, closing: 0 },
      agentsOnline: peers.agentCount,
      queueBytes: 0,
      slowConnections: outbox.overCount,
      bindings: 0,
      requestIds: requestIds.size,
      sessions: sessions.size,
      lockouts: lockout.lockouts,
      countedAuthFailures: lockout.failures,
      counters,
    };
    for (const { state, peer, link } of connections) {
      stats.queueBytes += link.queued();
      stats.connections[state === "closing" ? "closing" : (peer?.clientType ?? "waiting")] += 1;
    }
    for (const user of peers.users()) {
      stats.bindings += user.bindings.size;
    }
    return stats;
  }
}

export interface HubStats {
  /** By what they said they are; `waiting` have not authenticated, `closing` are ended. */
  connections: {
    client: number;
    agent: number;
    firmware: number;
    waiting: number;
    closing: number;
  };
  agentsOnline: number;
  /** Bytes that the operating system has not taken yet, over all connections. */
  queueBytes: number;
  slowConnections: number;
  bindings: number;
  requestIds: number;
  sessions: number;
  /** Addresses shut out and failures counted since the start, over REST and `/wss` together. */
  lockouts: number;
  countedAuthFailures: number;
  counters: Counters;
}
