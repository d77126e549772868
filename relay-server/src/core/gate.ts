/**
 * Who may come in (section 3): what an `auth` is answered, before and after its credentials were
 * looked up. The gate decides and counts; the hub sends and closes.
 */
import {
  MAX_AUTH_FAILURES_PER_CONNECTION,
  MAX_TAKEOVERS_PER_MINUTE,
  TAKEOVER_RETRY_S,
} from "@blindrelay/protocol";
import type { AuthFailureCode as AuthResponseCode } from "@blindrelay/protocol/schema";
import type { Connection } from "./connection.ts";
import type { AgentPeer } from "./peers.ts";
import type { AuthRequest, AuthResult } from "./ports.ts";
import { concerns } from "./revocations.ts";
import type { Tables } from "./tables.ts";
import type { AuthMessage } from "./wire.ts";

const MINUTE_MS = 60_000;

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

export class Gate {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** An `auth` arrived: what to look up, or a refusal without any look-up. */
  ask(connection: Connection, message: AuthMessage, now: number): AuthRequest | Refusal {
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
  judge(connection: Connection, result: AuthResult, now: number): Accepted | Refusal {
    // Guesses sent in parallel must not slip past a lockout that began while they were looked up.
    const shutOut = this.#shutOut(connection, now);
    if (shutOut !== null) {
      return shutOut;
    }
    if (!result.ok) {
      const retryAfterS = result.counted ? this.#tables.lockout.fail(connection.address, now) : 0;
      return this.#refuse(connection, result.code, result.error, retryAfterS);
    }
    if (this.#tables.revocations.since(connection.askedAt, (each) => concerns(each, result))) {
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
      this.#tables.sessions.isUsedUp(
        this.#tables.sessions.usedOf(result.sessionHash, result.requestsUsed),
      )
    ) {
      return this.#refuse(connection, "LIMIT_EXCEEDED", "Session token used up", 0);
    }
    return result;
  }

  #judgeAgent(connection: Connection, result: AcceptedAgent, now: number): Accepted | Refusal {
    const older = this.#tables.peers.agent(result.agentId);
    if (older === undefined || recentTakeovers(older, now).length < MAX_TAKEOVERS_PER_MINUTE) {
      return result;
    }
    const error = "Two devices take this agent over from each other; one of them must stop";
    return { ...this.#refuse(connection, "TAKEOVER_LOOP", error, TAKEOVER_RETRY_S), final: true };
  }

  #shutOut(connection: Connection, now: number): Refusal | null {
    const left = this.#tables.lockout.secondsLeft(connection.address, now);
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
export const recentTakeovers = (agent: AgentPeer, now: number): number[] =>
  agent.takeovers.filter((at) => at > now - MINUTE_MS);
