/**
 * The hub's questions answered from the store (section 3): who is this, and whose agent is that.
 * Texts of failures are exact; only a known prefix with a good checksum in the wrong place is told
 * more.
 */
import { readToken, TOKEN_NAMES } from "@blindrelay/protocol";
import type { AuthFailure, AuthRequest, AuthResult, HubLookups } from "../core/ports.ts";
import { ownerOf } from "../store/agents.ts";
import type { Store } from "../store/open.ts";
import {
  type Credential,
  type Finding,
  findCredential,
  HOLDER_NAMES,
  type Holder,
} from "./credentials.ts";
import { issueSession } from "./issue.ts";

/** The HubLookups over a store. */
export const storeLookups = (store: Store): HubLookups => ({
  authenticate: (request) => authenticate(store, request),
  ownerOf: (agentId) => ownerOf(store.db, agentId),
});

const authenticate = async (store: Store, request: AuthRequest): Promise<AuthResult> => {
  const side = request.clientType === "client" ? "client" : "agent";
  const text = request.apiToken ?? request.sessionToken ?? "";
  const finding = await findCredential(store.db, text, request.nowMs);
  const expected = EXPECTED[side][request.apiToken === undefined ? "session" : "persistent"];
  const misplaced = misplacement(text, finding, expected);
  if (misplaced !== null) return misplaced;
  if (finding.state === "unknown" || finding.state === "ended") {
    return invalid(finding.state === "unknown");
  }
  const { credential } = finding;
  if (side === "agent" && credential.agentId !== request.agentId) return invalid(false);
  if (finding.state === "expired") return stale("SESSION_EXPIRED", "Session token expired");
  if (finding.state === "used_up") return stale("LIMIT_EXCEEDED", "Session token used up");
  return admit(store, credential, text, request.nowMs);
};

const EXPECTED: {
  readonly [side in "client" | "agent"]: { readonly [field in "session" | "persistent"]: Holder };
} = {
  client: { persistent: "account", session: "client_session" },
  agent: { persistent: "agent", session: "agent_session" },
};

/** The failure that names both kinds, or null where the kind is right or cannot be told. */
const misplacement = (text: string, finding: Finding, expected: Holder): AuthFailure | null => {
  const reading = readToken(text);
  if (!reading.ok) return null;
  const holder = "credential" in finding ? finding.credential.holder : null;
  if (holder === expected) return null;
  const expectsSession = expected === "client_session" || expected === "agent_session";
  // A session token that the store does not know could be of either side: nothing to name.
  if (holder === null && reading.kind === (expectsSession ? "session" : expected)) return null;
  const got = holder === null ? TOKEN_NAMES[reading.kind] : HOLDER_NAMES[holder];
  return {
    ok: false,
    code: "WRONG_TOKEN_KIND",
    error: `Expected ${HOLDER_NAMES[expected]}, got ${got}`,
    counted: finding.state === "unknown",
  };
};

/**
 * Somebody who shows what is or once was valid is no guesser, so only unknown texts are counted.
 */
const invalid = (counted: boolean): AuthFailure => ({
  ok: false,
  code: "INVALID_TOKEN",
  error: "Invalid token",
  counted,
});

const stale = (code: "SESSION_EXPIRED" | "LIMIT_EXCEEDED", error: string): AuthFailure => ({
  ok: false,
  code,
  error,
  counted: false,
});

const admit = async (
  store: Store,
  credential: Credential,
  text: string,
  nowMs: number,
): Promise<AuthResult> => {
  const session =
    credential.expiresAtMs === null
      ? await issueSession(store, credential, nowMs)
      : { token: text, hash: credential.hash, expiresAtMs: credential.expiresAtMs };
  const common = {
    ok: true as const,
    userId: credential.userId,
    sessionHash: session.hash,
    sessionToken: session.token,
    expiresAtMs: session.expiresAtMs,
  };
  return credential.agentId === null
    ? {
        ...common,
        role: "client",
        requestsUsed: credential.expiresAtMs === null ? 0 : credential.requestsUsed,
      }
    : { ...common, role: "agent", agentId: credential.agentId };
};
