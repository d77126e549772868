/**
 * Authentication of a connection (section 3): the checks before and after the look-up of its
 * credentials, the `auth_response`, and the registration of the accepted peer.
 */
import {
  CLOSE_POLICY,
  MAX_AUTH_FAILURES_PER_CONNECTION,
  MAX_TAKEOVERS_PER_MINUTE,
  TAKEOVER_RETRY_S,
} from "@blindrelay/protocol";
import type { AuthFailureCode } from "@blindrelay/protocol/schema";
import { type AuthMessage, encodeAuthenticated, encodeAuthFailed } from "@blindrelay/protocol/wire";
import { type Claim, FREE } from "../bus.ts";
import type { AgentPeer, LocalClient } from "../connections/connection.ts";
import { advance, type Connection } from "../connections/connection.ts";
import { concerns } from "../connections/revocations.ts";
import type { AuthRequest, AuthResult } from "../ports.ts";
import type { HubState } from "../state.ts";
import type { Disconnector } from "./disconnect.ts";
import type { Heartbeat } from "./heartbeat.ts";

const MINUTE_MS = 60_000;
const MUCH_CHANGED = "Too much has changed meanwhile";
const MANY_UNKNOWN = "Too many unknown session tokens from this address";
/** Retry time for a client whose account has too many connections. */
const QUOTA_RETRY_S = 60;

type AcceptedClient = Extract<AuthResult, { role: "client" }>;
type AcceptedAgent = Extract<AuthResult, { role: "agent" }>;
export type Accepted = AcceptedClient | AcceptedAgent;

export interface AuthRefusal {
  ok: false;
  error: string;
  code: AuthFailureCode;
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

  /** What to look up for an `auth`; null when it was refused without a look-up. */
  ask(connection: Connection, message: AuthMessage, now: number): AuthRequest | null {
    const answer = this.#check(connection, message, now);
    if ("ok" in answer) {
      this.#sendRefusal(connection, answer, now);
      return null;
    }
    advance(connection, "auth");
    // The 30 s do not expire during the look-up; they are checked after it.
    this.#state.wheel.remove(connection);
    connection.clientType = answer.clientType;
    connection.wantsPresence = message.credentials?.presence === true;
    connection.report = message.credentials?.report ?? null;
    return answer;
  }

  /** Takes the look-up's answer, and what the other nodes report about an agent. */
  finish(connection: Connection, result: AuthResult, claim: Claim, now: number): void {
    const verdict = this.#judge(connection, result, claim, now);
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
    const renewed = verdict.role === "client" && verdict.renews !== undefined;
    const text = encodeAuthenticated(verdict.sessionToken, expiresInS, maxRequests, renewed);
    this.#state.controlMessages.send(connection, text, now);
    if (verdict.role === "client") {
      this.#seatClient(connection, verdict, now);
    } else {
      this.#seatAgent(connection, verdict, claim, now);
    }
    if (connection.state !== "closing") this.#heartbeat.start(connection, now);
  }

  #sendRefusal(connection: Connection, refusal: AuthRefusal, now: number): void {
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
    const { peers, requestCounts, presence, gauges, views } = this.#state;
    const { userId, sessionHash, requestsUsed, expiresAtMs } = accepted;
    const peer: LocalClient = {
      role: "client",
      clientType: connection.clientType,
      connection,
      userId,
      user: peers.user(userId),
      sessionHash,
      renews: accepted.renews,
      session: requestCounts.join(sessionHash, requestsUsed, expiresAtMs),
      onlineSince: now,
      origin: null,
      // Not what it sees, which its view holds.
      key: accepted.key === undefined ? null : { id: accepted.key.id },
      view: views.open(accepted.key, userId),
      bound: new Set(),
      latest: null,
      requests: new Set(),
    };
    connection.peer = peer;
    gauges.become(peer.clientType, "waiting");
    peers.add(peer);
    views.add(peer);
    if (peer.view !== null) {
      for (const agentId of views.changedSince(connection.viewsAskedAt) ?? []) views.doubt(agentId);
    }
    if (peer.user.clients.size === 1) this.#state.bus.clientsOnline(userId);
    if (connection.wantsPresence) {
      presence.startSnapshot(peer, now);
    }
  }

  #seatAgent(connection: Connection, accepted: AcceptedAgent, claim: Claim, now: number): void {
    const { peers, ownerCache, presence, gauges, counters, port, bus } = this.#state;
    const { agentId, userId, sessionHash, loginNumber } = accepted;
    const older = peers.agent(agentId);
    if (claim.kind === "superseded" || (older !== undefined && older.loginNumber > loginNumber)) {
      this.#disconnector.endWith(connection, "REPLACED", null, now);
      return;
    }
    const user = peers.user(userId);
    const abroad = user.abroad.get(agentId);
    user.abroad.delete(agentId);
    // A link that is gone is heard to its end, and is not replaced.
    const replaced = older?.connection.isGoing === true ? undefined : older;
    const earlier = replaced ?? yielded(claim, now);
    const peer: AgentPeer = {
      role: "agent",
      clientType: connection.clientType,
      connection,
      userId,
      user,
      sessionHash,
      agentId,
      loginNumber,
      onlineSince: (older ?? earlier ?? abroad)?.onlineSince ?? now,
      takeovers: takeoversOf(earlier, claim, now),
    };
    connection.peer = peer;
    gauges.become(peer.clientType, "waiting");
    // The newer link is added before the older leaves, so the agent never appears offline.
    peers.add(peer);
    ownerCache.remember(agentId, userId);
    port.agentSeen(agentId, now, connection.report, true);
    connection.report = null; // not needed again; with 10,000 agents it would add up
    bus.agentOnline(userId, { agentId, loginNumber, onlineForMs: now - peer.onlineSince });
    // Also if it comes from a node that was taken for lost: clients here were told that it is gone.
    if (older === undefined && abroad === undefined) {
      presence.announce(user, agentId, true, now);
    } else if (replaced !== undefined) {
      counters.takeovers += 1;
      this.#disconnector.endWith(replaced.connection, "REPLACED", null, now);
    }
  }

  /** A login on another node asks for an agent's place here. Limited in frequency. */
  claimAgent(agentId: string, node: string, loginNumber: number, now: number): Claim {
    const agent = this.#state.peers.agent(agentId);
    const isLoop =
      agent !== undefined &&
      !this.#isMoving(agent) &&
      agent.loginNumber <= loginNumber &&
      recentTakeovers(agent, now).length >= MAX_TAKEOVERS_PER_MINUTE;
    return isLoop ? { kind: "loop" } : this.yieldAgent(agentId, node, loginNumber, now);
  }

  /** Another node already has a login of the agent: the older one ends, without that limit. */
  yieldAgent(agentId: string, node: string, loginNumber: number, now: number): Claim {
    const { peers, counters, remoteAgents, bus } = this.#state;
    const agent = peers.agent(agentId);
    if (agent === undefined) return FREE;
    if (agent.loginNumber > loginNumber) return { kind: "superseded" };
    const moving = this.#isMoving(agent);
    const takeovers = recentTakeovers(agent, now);
    if (!moving) counters.takeovers += 1;
    peers.remove(agent); // so that its end does not count as "offline"
    const { user, onlineSince } = agent;
    remoteAgents.yielded(user, agentId, { node, loginNumber, onlineSince }, now);
    bus.agentOffline(user.id, agentId, agent.loginNumber, true);
    this.#disconnector.endWith(agent.connection, "REPLACED", null, now);
    return {
      kind: "yielded",
      onlineForMs: now - agent.onlineSince,
      takeoverAgesMs: takeovers.map((at) => now - at),
      isPlanned: moving,
    };
  }

  /** Whether this node has asked the agent to connect elsewhere. */
  #isMoving({ connection }: AgentPeer): boolean {
    return this.#state.moving || connection.leaving !== null;
  }

  /** Checks an `auth`: returns what to look up, or a refusal without any look-up. */
  #check(connection: Connection, message: AuthMessage, now: number): AuthRequest | AuthRefusal {
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

  /** Accepts or refuses, after the look-up. */
  #judge(
    connection: Connection,
    result: AuthResult,
    claim: Claim,
    now: number,
  ): Accepted | AuthRefusal {
    // Guesses sent in parallel must not slip past a lockout that began while they were looked up.
    const shutOut = this.#shutOut(connection, now);
    if (shutOut !== null) {
      return shutOut;
    }
    if (!result.ok && result.isUnknownSession === true) {
      const waitS = this.#state.lockout.unknownSessions.count(connection.address, now);
      return waitS === 0
        ? this.#refuse(connection, result.code, result.error, 0)
        : this.#refuse(connection, "RATE_LIMITED", MANY_UNKNOWN, waitS);
    }
    if (!result.ok) {
      const retryAfterS = result.counted ? this.#state.lockout.fail(connection.address, now) : 0;
      return this.#refuse(connection, result.code, result.error, retryAfterS);
    }
    if (!this.#state.revocations.knows(connection.askedAt)) {
      return this.#refuse(connection, "UNAVAILABLE", MUCH_CHANGED, 0);
    }
    if (this.#state.revocations.since(connection.askedAt, (each) => concerns(each, result))) {
      return this.#refuse(connection, "INVALID_TOKEN", "Invalid token", 0);
    }
    return result.role === "client"
      ? this.#judgeClient(connection, result, now)
      : this.#judgeAgent(connection, result, claim, now);
  }

  #judgeClient(
    connection: Connection,
    result: AcceptedClient,
    now: number,
  ): Accepted | AuthRefusal {
    if (
      result.key !== undefined &&
      this.#state.views.changedSince(connection.viewsAskedAt) === null
    ) {
      return this.#refuse(connection, "UNAVAILABLE", MUCH_CHANGED, 0);
    }
    if (now >= result.expiresAtMs) {
      return this.#refuse(connection, "SESSION_EXPIRED", "Session token expired", 0);
    }
    // The store's count is a few seconds old; the count here is current.
    if (
      this.#state.requestCounts.isUsedUp(
        this.#state.requestCounts.usedOf(result.sessionHash, result.requestsUsed),
      )
    ) {
      return this.#refuse(connection, "LIMIT_EXCEEDED", "Session token used up", 0);
    }
    const { clientsPerUser } = this.#state.limits;
    // Whoever has an access key must not keep the account out.
    const isKeyed = result.key !== undefined;
    if (this.#state.peers.clientCount(result.userId, isKeyed) >= clientsPerUser) {
      const whose = isKeyed ? "The access keys of this account have" : "This account has";
      const error = `${whose} ${clientsPerUser} client connections already`;
      return {
        ...this.#refuse(connection, "QUOTA_EXCEEDED", error, QUOTA_RETRY_S),
        final: true,
      };
    }
    return result;
  }

  #judgeAgent(
    connection: Connection,
    result: AcceptedAgent,
    claim: Claim,
    now: number,
  ): Accepted | AuthRefusal {
    const older = this.#state.peers.agent(result.agentId);
    const takeovers = older === undefined ? 0 : recentTakeovers(older, now).length;
    if (claim.kind !== "loop" && takeovers < MAX_TAKEOVERS_PER_MINUTE) return result;
    const error = "Two devices take this agent over from each other; one of them must stop";
    return { ...this.#refuse(connection, "TAKEOVER_LOOP", error, TAKEOVER_RETRY_S), final: true };
  }

  #shutOut(connection: Connection, now: number): AuthRefusal | null {
    const left = this.#state.lockout.secondsLeft(connection.address, now);
    const error = "Too many failed authentications from this address";
    return left > 0 ? this.#refuse(connection, "LOCKED_OUT", error, left) : null;
  }

  #refuse(
    connection: Connection,
    code: AuthFailureCode,
    error: string,
    retryAfterS: number,
  ): AuthRefusal {
    connection.authFailures += 1;
    const final = retryAfterS > 0 || connection.authFailures >= MAX_AUTH_FAILURES_PER_CONNECTION;
    return { ok: false, error, code, retryAfterS, final };
  }
}

const NONE: readonly number[] = [];

/** The takeovers of an agent within the last minute, oldest first. */
const recentTakeovers = (agent: Pick<AgentPeer, "takeovers">, now: number): number[] =>
  agent.takeovers.filter((at) => at > now - MINUTE_MS);

/** The takeovers of an agent that has its place now. `earlier`: its previous link, if any. */
const takeoversOf = (
  earlier: Pick<AgentPeer, "takeovers"> | null,
  claim: Claim,
  now: number,
): readonly number[] => {
  if (earlier === null) return NONE;
  const before = recentTakeovers(earlier, now);
  return claim.kind === "yielded" && claim.isPlanned === true ? before : [...before, now];
};

/** What an agent's link on another node handed over. */
const yielded = (claim: Claim, now: number): Pick<AgentPeer, "onlineSince" | "takeovers"> | null =>
  claim.kind === "yielded"
    ? {
        onlineSince: now - claim.onlineForMs,
        takeovers: claim.takeoverAgesMs.map((age) => now - age),
      }
    : null;
