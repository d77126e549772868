/**
 * Decides who may log in, as the relay does (section 3, "Authentication"): for the virtual store
 * and for the relay in memory. The test runs the same cases on both.
 */
import { readToken, SESSION_MAX_REQUESTS, TOKEN_NAMES } from "@blindrelay/protocol";
import type { AuthRequest, AuthResult } from "@blindrelay/relay-server/core";

type AuthRefusal = Extract<AuthResult, { ok: false }>;

/** A credential that was issued and is still valid. */
export interface Credential {
  readonly holder: Holder;
  /** Only agents have one. */
  readonly agentId: string | null;
  /** Unix milliseconds; null for persistent tokens. */
  readonly expiresAtMs: number | null;
  /** Requests left. */
  readonly used: number;
}

/** "ended": rotated, removed, or its session is over. null: never issued, or forgotten. */
export type Found = Credential | "ended" | null;

type Holder = "account" | "agent" | "client_session" | "agent_session";

const HOLDER_NAMES: { readonly [holder in Holder]: string } = {
  account: TOKEN_NAMES.account,
  agent: TOKEN_NAMES.agent,
  client_session: "a client's session token (sess_)",
  agent_session: "an agent's session token (sess_)",
};

export const sideOf = ({ clientType }: AuthRequest): "client" | "agent" =>
  clientType === "client" ? "client" : "agent";

export const tokenOf = ({ apiToken, sessionToken }: AuthRequest): string =>
  apiToken ?? sessionToken ?? "";

/** Why the store refuses the credential that it found for a token; null if it is valid. */
export const refusalOf = (
  request: AuthRequest,
  found: Found,
  nowMs: number,
): AuthRefusal | null => {
  const side = sideOf(request);
  const expected: Holder =
    request.apiToken === undefined ? `${side}_session` : side === "client" ? "account" : "agent";
  const credential = found === "ended" ? null : found;
  const isExpired = credential?.expiresAtMs != null && credential.expiresAtMs <= nowMs;
  const isUsedUp =
    credential?.holder === "client_session" && credential.used >= SESSION_MAX_REQUESTS;
  // A credential that was valid once is no guess.
  const counted = found !== "ended" && !isExpired && !isUsedUp;
  const got = misplaced(tokenOf(request), credential, expected);
  if (got !== null) {
    const error = `Expected ${HOLDER_NAMES[expected]}, got ${got}`;
    return { ok: false, code: "WRONG_TOKEN_KIND", error, counted };
  }
  const isOther = side === "agent" && credential?.agentId !== request.agentId;
  if (credential === null || isOther) {
    return { ok: false, code: "INVALID_TOKEN", error: "Invalid token", counted };
  }
  if (isExpired) {
    return { ok: false, code: "SESSION_EXPIRED", error: "Session token expired", counted };
  }
  if (isUsedUp) {
    return { ok: false, code: "LIMIT_EXCEEDED", error: "Session token used up", counted };
  }
  return null;
};

/** The kind of a valid token in the wrong place; null if it is in the right one, or no token. */
const misplaced = (
  token: string,
  credential: Credential | null,
  expected: Holder,
): string | null => {
  if (credential !== null) {
    return credential.holder === expected ? null : HOLDER_NAMES[credential.holder];
  }
  const reading = readToken(token);
  if (!reading.ok) return null;
  const kind = expected === "account" || expected === "agent" ? expected : "session";
  return reading.kind === kind ? null : TOKEN_NAMES[reading.kind];
};

/** What a store keeps of a session. */
export interface StoredSession {
  readonly side: "client" | "agent";
  readonly userId: string;
  /** "" with a client. */
  readonly agentId: string;
  readonly expiresAtMs: number;
  used: number;
}

/** A login with a session's token. */
export const admitted = (
  { side, userId, agentId, expiresAtMs, used }: StoredSession,
  sessionToken: string,
  sessionHash: string,
  loginNumber: number,
): AuthResult => {
  const common = { ok: true as const, userId, sessionHash, sessionToken, expiresAtMs };
  return side === "client"
    ? { ...common, role: "client", requestsUsed: used }
    : { ...common, role: "agent", agentId, loginNumber };
};

/** Tokens that were valid once. The oldest are forgotten first. */
export class EndedTokens {
  private readonly tokens = new Set<string>();

  add(token: string): void {
    this.tokens.add(token);
    if (this.tokens.size <= MAX_ENDED) return;
    const [oldest] = this.tokens;
    this.tokens.delete(oldest as string);
  }

  has(token: string): boolean {
    return this.tokens.has(token);
  }
}

const MAX_ENDED = 10_000;
