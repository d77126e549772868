/**
 * The hub's ports (section 3 of protocol/README.md): everything it asks of its environment and
 * everything it reports. There are two kinds:
 *
 * - `HubLink` and `HubPort` are what the pure hub calls. They are synchronous and return nothing;
 *   an answer arrives as an event (`hub.authenticated`, `hub.ownerFound`), later or before the call
 *   returns.
 * - `HubLookups` and `WriteBehind` are what the store offers, possibly with a delay;
 *   `ws/hub-driver.ts` connects the two.
 */
import type { AccessKey, AgentLabels } from "./connections/access-key.ts";
import type { Connection } from "./connections/connection.ts";
import type { TurnPort } from "./connections/fair-scheduler.ts";
import type { RequestCountPort } from "./limits/request-reservations.ts";
import type { AgentReport, ClientType } from "./link.ts";

/** What the hub asks of the process around it. */
export interface HubPort extends RequestCountPort, TurnPort {
  /** Answered by `hub.authenticated(connection, result, now)`. */
  authenticate(connection: Connection, request: AuthRequest): void;
  /** Answered by `hub.ownerFound(connection, owner, now)` or `hub.ownerUnknown`. */
  findOwner(connection: Connection, agentId: string): void;
  /** Answered by `hub.labelsFound(agentId, labels, now)` or `hub.labelsUnknown(agentId)`. */
  findLabels(agentId: string): void;
  /** An agent connected, with this report, or disconnected (null). */
  agentSeen(agentId: string, nowMs: number, report: AgentReport | null, online: boolean): void;
}

/** Exactly one of `apiToken` and `sessionToken` is present; neither has been checked in any way. */
export interface AuthRequest {
  apiToken?: string;
  sessionToken?: string;
  clientType: ClientType;
  /** As the peer sent it, unchecked; agents always send it, for clients it means nothing. */
  agentId?: string;
  /** Of a client: the session token that it renews, as unchecked as the others. */
  renews?: string;
  address: string;
  nowMs: number;
  /** Whether somebody still waits for the answer; otherwise the store need not be asked. */
  isWanted?: () => boolean;
}

/** `expiresAtMs` is on the clock of `AuthRequest.nowMs` (Unix time in milliseconds). */
export type AuthResult =
  | {
      ok: true;
      role: "client";
      userId: string;
      sessionHash: string;
      sessionToken: string;
      expiresAtMs: number;
      requestsUsed: number;
      /** The hash of the session token that it rightly renews. */
      renews?: string;
      /** The access key that it came in with. */
      key?: AccessKey;
    }
  | {
      ok: true;
      role: "agent";
      userId: string;
      agentId: string;
      sessionHash: string;
      sessionToken: string;
      expiresAtMs: number;
      /**
       * Higher than that of every earlier login of this agent, on any node; 0 if there is one node.
       */
      loginNumber: number;
    }
  | LookupFailure;

export interface LookupFailure {
  ok: false;
  code: LookupFailureCode;
  /** The text for the peer: "Invalid token", or the names of both kinds. */
  error: string;
  /** Whether it counts as a failed authentication of the address. */
  counted: boolean;
  /** A well-formed session token that the store does not know (unknown-sessions.ts). */
  isUnknownSession?: boolean;
}

type LookupFailureCode =
  | "INVALID_TOKEN"
  | "WRONG_TOKEN_KIND"
  | "SESSION_EXPIRED"
  | "LIMIT_EXCEEDED"
  | "UNAVAILABLE";

/**
 * Look-ups in the store, with a promise only if there is something to wait for. If it rejects, the
 * peer gets `UNAVAILABLE`.
 */
export interface HubLookups {
  authenticate(request: AuthRequest): AuthResult | Promise<AuthResult>;
  /** The user who owns the agent, or null if there is no such agent. */
  ownerOf(agentId: string): string | null | Promise<string | null>;
  /** Null: there is no such agent. */
  labelsOf(agentId: string): AgentLabels | null | Promise<AgentLabels | null>;
}

/**
 * What the hub writes to the store without waiting. Rejections are logged, never shown to a peer.
 */
export interface WriteBehind {
  /** See RequestCountPort. */
  saveRequestsUsed(sessionHash: string, used: number, added: number): Promise<void>;
  agentSeen(
    agentId: string,
    nowMs: number,
    report: AgentReport | null,
    online: boolean,
  ): Promise<void>;
}
