/** Carries out what the gate decides: the `auth_response`, and the place among the peers. */
import { CLOSE_POLICY } from "@blindrelay/protocol";
import { advance, type Connection } from "./connection.ts";
import type { Ends } from "./ends.ts";
import {
  type AcceptedAgent,
  type AcceptedClient,
  Gate,
  type Refusal,
  recentTakeovers,
} from "./gate.ts";
import type { Heartbeat } from "./heartbeat.ts";
import type { AgentPeer, ClientPeer } from "./peers.ts";
import type { AuthRequest, AuthResult } from "./ports.ts";
import type { Tables } from "./tables.ts";
import { type AuthMessage, authFailedText, authSuccessText } from "./wire.ts";

export class Entrance {
  readonly #tables: Tables;
  readonly #ends: Ends;
  readonly #heartbeat: Heartbeat;
  readonly #gate: Gate;

  constructor(tables: Tables, ends: Ends, heartbeat: Heartbeat) {
    this.#tables = tables;
    this.#ends = ends;
    this.#heartbeat = heartbeat;
    this.#gate = new Gate(tables);
  }

  /** What to look up for an `auth`; null when it is refused without, and the peer has been told. */
  ask(connection: Connection, message: AuthMessage, now: number): AuthRequest | null {
    const answer = this.#gate.ask(connection, message, now);
    if ("ok" in answer) {
      this.#refuse(connection, answer, now);
      return null;
    }
    advance(connection, "auth");
    // While the store thinks, the 30 s do not run out; they are looked at when it has answered.
    this.#tables.wheel.remove(connection);
    connection.clientType = answer.clientType;
    connection.wantsPresence = message.credentials?.presence === true;
    connection.report = message.credentials?.report ?? null;
    return answer;
  }

  /** The look-up's answer. */
  finish(connection: Connection, result: AuthResult, now: number): void {
    const verdict = this.#gate.judge(connection, result, now);
    if (!verdict.ok) {
      advance(connection, "refused");
      this.#refuse(connection, verdict, now);
      return;
    }
    this.#tables.counters.authSuccesses += 1;
    advance(connection, "accepted");
    this.#tables.lobby.leave(connection);
    const expiresInS = Math.max(0, Math.ceil((verdict.expiresAtMs - now) / 1000));
    const text = authSuccessText(verdict.sessionToken, expiresInS);
    this.#tables.notices.send(connection, text, now);
    if (verdict.role === "client") {
      this.#seatClient(connection, verdict, now);
    } else {
      this.#seatAgent(connection, verdict, now);
    }
    this.#heartbeat.start(connection, now);
  }

  #refuse(connection: Connection, refusal: Refusal, now: number): void {
    this.#tables.counters.authFailures += 1;
    const { error, code, retryAfterS } = refusal;
    this.#tables.notices.send(connection, authFailedText(error, code, retryAfterS), now);
    if (refusal.final) {
      this.#ends.end(connection, CLOSE_POLICY, code, now);
    } else if (now >= connection.authDeadline) {
      this.#ends.endWith(connection, "AUTH_TIMEOUT", null, now);
    } else {
      this.#heartbeat.awaitAuth(connection);
    }
  }

  #seatClient(connection: Connection, accepted: AcceptedClient, now: number): void {
    const { peers, sessions, presence } = this.#tables;
    const { userId, sessionHash, requestsUsed, expiresAtMs } = accepted;
    const peer: ClientPeer = {
      role: "client",
      clientType: connection.clientType,
      connection,
      userId,
      user: peers.user(userId),
      sessionHash,
      session: sessions.join(sessionHash, requestsUsed, expiresAtMs),
      bound: new Set(),
      requests: new Set(),
    };
    connection.peer = peer;
    peers.add(peer);
    if (connection.wantsPresence) {
      presence.startSnapshot(peer, now);
    }
  }

  #seatAgent(connection: Connection, accepted: AcceptedAgent, now: number): void {
    const { peers, owners, presence, counters, port } = this.#tables;
    const { agentId, userId, sessionHash } = accepted;
    const older = peers.agent(agentId);
    const peer: AgentPeer = {
      role: "agent",
      clientType: connection.clientType,
      connection,
      userId,
      user: peers.user(userId),
      sessionHash,
      agentId,
      onlineSince: older?.onlineSince ?? now,
      takeovers: older === undefined ? [] : [...recentTakeovers(older, now), now],
    };
    connection.peer = peer;
    // The newer takes the place before the older leaves, so nobody sees the agent offline.
    peers.add(peer);
    owners.remember(agentId, userId);
    port.agentSeen(agentId, now, connection.report);
    if (older === undefined) {
      presence.announce(peer, true, now);
    } else {
      counters.takeovers += 1;
      this.#ends.endWith(older.connection, "REPLACED", null, now);
    }
  }
}
