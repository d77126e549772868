/**
 * Authentication of a connection (section 3): what an `auth` is answered, before and after its
 * credentials were looked up, and the accepted peer's place among the others.
 */
import {
  CLOSE_POLICY,
  MAX_AUTH_FAILURES_PER_CONNECTION,
  MAX_TAKEOVERS_PER_MINUTE,
  TAKEOVER_RETRY_S,
} from "@blindrelay/protocol";
import type { AuthFailureCode as AuthResponseCode } from "@blindrelay/protocol/schema";
import { type AuthMessage, encodeAuthenticated, encodeAuthFailed } from "@blindrelay/protocol/wire";
import type { AgentPeer, ClientPeer } from "./connection.ts";
import { advance, type Connection } from "./connection.ts";
import type { Disconnector } from "./disconnect.ts";
import type { Heartbeat } from "./heartbeat.ts";
import type { AuthRequest, AuthResult } from "./ports.ts";
import { concerns } from "./revocations.ts";
import type { HubState } from "./state.ts";

const MINUTE_MS = 60_000;
/** What a client waits whose account has too many connections. */
const QUOTA_RETRY_S = 60;

export type AcceptedClient = Extract<AuthResult, { role: "client" }>;
export type AcceptedAgent = Extract<AuthResult, { role: "agent" }>;
export type Accepted = AcceptedClient | AcceptedAgent;

export interface Refusal {
  ok: false;
  error: string;
  code: AuthResponseCode;
  retryAfterS: number;
  /** Whether 1008 follows. */
  final: boolean;
}

export class Authenticator {
  readonly #state: HubState;
  readonly #disconnector: Disconnector;
  readonly #heartbeat: Heartbeat;

  constructor(state: HubState, disconnector: Disconnector, heartbeat: Heartbeat) {
    this.#state = state;
    this.#disconnector = disconnector;
    this.#heartbeat = heartbeat;
  }

  /** What to look up for an `auth`; null when it is refused without, and the peer has been told. */
  ask(connection: Connection, message: AuthMessage, now: number): AuthRequest | null {
    const answer = this.#check(connection, message, now);
    if ("ok" in answer) {
      this.#sendRefusal(connection, answer, now);
      return null;
    }
    advance(connection, "auth");
    // While the store thinks, the 30 s do not run out; they are looked at when it has answered.
    this.#state.wheel.remove(connection);
    connection.clientType = answer.clientType;
    connection.wantsPresence = message.credentials?.presence === true;
    connection.report = message.credentials?.report ?? null;
    return answer;
  }

  /** The look-up's answer. */
  finish(connection: Connection, result: AuthResult, now: number): void {
    const verdict = this.#judge(connection, result, now);
    if (!verdict.ok) {
      advance(connection, "refused");
      this.#sendRefusal(connection, verdict, now);
      return;
    }
    this.#state.counters.authSuccesses += 1;
    advance(connection, "accepted");
    this.#state.unauthenticated.leave(connection);
    const expiresInS = Math.max(0, Math.ceil((verdict.expiresAtMs - now) / 1000));
    const { maxRequests } = this.#state.limits;
    const text = encodeAuthenticated(verdict.sessionToken, expiresInS, maxRequests);
    this.#state.controlMessages.send(connection, text, now);
    if (verdict.role === "client") {
      this.#seatClient(connection, verdict, now);
    } else {
      this.#seatAgent(connection, verdict, now);
    }
    this.#heartbeat.start(connection, now);
  }

  #sendRefusal(connection: Connection, refusal: Refusal, now: number): void {
    this.#state.counters.authFailures += 1;
    const { error, code, retryAfterS } = refusal;
    this.#state.controlMessages.send(connection, encodeAuthFailed(error, code, retryAfterS), now);
    if (refusal.final) {
      this.#disconnector.end(connection, CLOSE_POLICY, code, now);
    } else if (now >= connection.authDeadline) {
      this.#disconnector.endWith(connection, "AUTH_TIMEOUT", null, now);
    } else {
      this.#heartbeat.awaitAuth(connection);
    }
  }

  #seatClient(connection: Connection, accepted: AcceptedClient, now: number): void {
    const { peers, sessions, presence } = this.#state;
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
    const { peers, ownerCache, presence, counters, port } = this.#state;
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
    ownerCache.remember(agentId, userId);
    port.agentSeen(agentId, now, connection.report);
    if (older === undefined) {
      presence.announce(peer, true, now);
    } else {
      counters.takeovers += 1;
      this.#disconnector.endWith(older.connection, "REPLACED", null, now);
    }
  }

  /** An `auth` arrived: what to look up, or a refusal without any look-up. */
  #check(connection: Connection, message: AuthMessage, now: number): AuthRequest | Refusal {
    const shutOut = this.#shutOut(connection, now);
    if (shutOut !== null) {
      return shutOut;
    }
    if (message.credentials === null) {
      return this.#refuse(connection, "BAD_MESSAGE", message.fault, 0);
    }
    const { presence: _, report: __, ...credentials } = message.credentials;
    return { ...credentials, address: connection.address, nowMs: now };
  }

  /** The look-up's answer came: let in, or not. */
  #judge(connection: Connection, result: AuthResult, now: number): Accepted | Refusal {
    // Guesses sent in parallel must not slip past a lockout that began while they were looked up.
    const shutOut = this.#shutOut(connection, now);
    if (shutOut !== null) {
      return shutOut;
    }
    if (!result.ok) {
      const retryAfterS = result.counted ? this.#state.lockout.fail(connection.address, now) : 0;
      return this.#refuse(connection, result.code, result.error, retryAfterS);
    }
    if (this.#state.revocations.since(connection.askedAt, (each) => concerns(each, result))) {
      return this.#refuse(connection, "INVALID_TOKEN", "Invalid token", 0);
    }
    return result.role === "client"
      ? this.#judgeClient(connection, result, now)
      : this.#judgeAgent(connection, result, now);
  }

  #judgeClient(connection: Connection, result: AcceptedClient, now: number): Accepted | Refusal {
    if (now >= result.expiresAtMs) {
      return this.#refuse(connection, "SESSION_EXPIRED", "Session token expired", 0);
    }
    // The store's count is a few seconds old; ours is not.
    if (
      this.#state.sessions.isUsedUp(
        this.#state.sessions.usedOf(result.sessionHash, result.requestsUsed),
      )
    ) {
      return this.#refuse(connection, "LIMIT_EXCEEDED", "Session token used up", 0);
    }
    const { clientsPerUser } = this.#state.limits;
    if (this.#state.peers.clientCount(result.userId) >= clientsPerUser) {
      const error = `This account has ${clientsPerUser} client connections already`;
      return {
        ...this.#refuse(connection, "QUOTA_EXCEEDED", error, QUOTA_RETRY_S),
        final: true,
      };
    }
    return result;
  }

  #judgeAgent(connection: Connection, result: AcceptedAgent, now: number): Accepted | Refusal {
    const older = this.#state.peers.agent(result.agentId);
    if (older === undefined || recentTakeovers(older, now).length < MAX_TAKEOVERS_PER_MINUTE) {
      return result;
    }
    const error = "Two devices take this agent over from each other; one of them must stop";
    return { ...this.#refuse(connection, "TAKEOVER_LOOP", error, TAKEOVER_RETRY_S), final: true };
  }

  #shutOut(connection: Connection, now: number): Refusal | null {
    const left = this.#state.lockout.secondsLeft(connection.address, now);
    const error = "Too many failed authentications from this address";
    return left > 0 ? this.#refuse(connection, "LOCKED_OUT", error, left) : null;
  }

  #refuse(
    connection: Connection,
    code: AuthResponseCode,
    error: string,
    retryAfterS: number,
  ): Refusal {
    connection.authFailures += 1;
    const final = retryAfterS > 0 || connection.authFailures >= MAX_AUTH_FAILURES_PER_CONNECTION;
    return { ok: false, error, code, retryAfterS, final };
  }
}

/** The takeovers of an agent within the last minute, oldest first. */
const recentTakeovers = (agent: AgentPeer, now: number): number[] =>
  agent.takeovers.filter((at) => at > now - MINUTE_MS);
