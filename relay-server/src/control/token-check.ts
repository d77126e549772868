/**
 * Checks the token of a login at `/wss` (section 3), and looks up who owns an agent. Failures do
 * not say why a token is invalid; only a token with a valid checksum in the wrong place gets more
 * detail.
 */
import { readToken, TOKEN_NAMES } from "@blindrelay/protocol";
import { matchesKeySelector, type Selector, SelectorError } from "@blindrelay/protocol/selector";
import { type MaybePromise, whenKnown } from "../base/maybe-promise.ts";
import type { AccessKey } from "../core/connections/access-key.ts";
import { addressKey } from "../core/limits/address-group.ts";
import type { AuthRequest, AuthResult, HubLookups, LookupFailure } from "../core/ports.ts";
import { chosenIn } from "../store/agent-selector.ts";
import { chosenAgents, labelledAgents, labelsOf, ownerOf } from "../store/agents.ts";
import type { Db, Store } from "../store/open.ts";
import { noteUse } from "./access-keys.ts";
import {
  type Credential,
  type CredentialState,
  findCredential,
  HOLDER_NAMES,
  type Holder,
  type KeyFacts,
} from "./credentials.ts";
import { type Issued, issueSession } from "./issue.ts";
import { KeyedMutex } from "./keyed-mutex.ts";

/**
 * Look-ups of one address at a time, where they wait for a database: those of other addresses wait
 * for no more than these, and guesses sent in parallel end with the lockout.
 */
const LOOK_UPS_PER_ADDRESS = 8;

/** How long after its end a session token can be renewed. */
const RENEWABLE_MS = 3_600_000;

export const storeLookups = (store: Store): HubLookups => {
  const turns = new KeyedMutex();
  let asked = 0;
  const find = (request: AuthRequest, text: string): MaybePromise<CredentialState | null> => {
    const look = () =>
      request.isWanted?.() === false ? null : findCredential(store.db, text, request.nowMs);
    if (store.pool() === null) return look();
    asked = (asked + 1) % LOOK_UPS_PER_ADDRESS;
    return turns.pass(`${addressKey(request.address)} ${asked}`, async () => look());
  };
  return {
    authenticate: (request) => {
      const text = request.apiToken ?? request.sessionToken ?? "";
      return whenKnown(find(request, text), (finding) =>
        finding === null ? UNWANTED : authenticate(store, request, text, finding),
      );
    },
    ownerOf: (agentId) => ownerOf(store.db, agentId),
    labelsOf: (agentId) => labelsOf(store.db, agentId),
  };
};

const authenticate = (
  store: Store,
  request: AuthRequest,
  text: string,
  finding: CredentialState,
): MaybePromise<AuthResult> =>
  whenKnown(judge(store, request, text, finding), (result) =>
    whenKnown(renewing(store, request, keyIn(finding), result), (renewed) =>
      withKey(store, request, finding, renewed),
    ),
  );

/** By SQL, or one by one where too many different values match. */
const agentsFor = async (db: Db, userId: string, selector: Selector): Promise<string[]> => {
  try {
    return await chosenAgents(db, userId, await chosenIn(db, userId, selector));
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error;
    const all = await labelledAgents(db, userId);
    const chosen = all.filter((agent) => matchesKeySelector(selector, agent));
    return chosen.map(({ agent_id }) => agent_id);
  }
};

const keyIn = (finding: CredentialState): KeyFacts | null =>
  "credential" in finding ? finding.credential.key : null;

/** Adds the access key that a client came in with, and the agents that it may see. */
const withKey = (
  store: Store,
  { nowMs }: AuthRequest,
  finding: CredentialState,
  result: AuthResult,
): MaybePromise<AuthResult> => {
  if (!result.ok || result.role !== "client" || !("credential" in finding)) return result;
  const { key, userId } = finding.credential;
  if (key === null) return result;
  const { id, selector } = key;
  const admit = async (): Promise<AuthResult> => {
    await noteUse(store, key, nowMs);
    if (selector === null) {
      return { ...result, key: { id, matches: null, agents: null } };
    }
    const agents = await agentsFor(store.db, userId, selector);
    const matches: AccessKey["matches"] = (agentId, labels) =>
      matchesKeySelector(selector, { agent_id: agentId, labels });
    return { ...result, key: { id, matches, agents } };
  };
  return admit();
};

/**
 * Adds the session token that a client's login renews: one of the same account, until an hour after
 * its end. Any other is ignored and not counted, for whoever sends it has logged in.
 */
const renewing = (
  store: Store,
  { renews, nowMs }: AuthRequest,
  keyed: KeyFacts | null,
  result: AuthResult,
): MaybePromise<AuthResult> => {
  if (renews === undefined || !result.ok || result.role !== "client") return result;
  return whenKnown(findCredential(store.db, renews, nowMs), (finding): AuthResult => {
    if (!("credential" in finding)) return result;
    const { holder, userId, hash, expiresAtMs, key } = finding.credential;
    // What a key may see, it may not take over from the account, nor from another key.
    const isSameKey = key?.id === keyed?.id;
    const isRecent = nowMs < (expiresAtMs ?? 0) + RENEWABLE_MS;
    const isTheirs = holder === "client_session" && userId === result.userId && isSameKey;
    return isTheirs && isRecent ? { ...result, renews: hash } : result;
  });
};

const judge = (
  store: Store,
  request: AuthRequest,
  text: string,
  finding: CredentialState,
): MaybePromise<AuthResult> => {
  const side = request.clientType === "client" ? "client" : "agent";
  const field = request.apiToken === undefined ? "session" : "persistent";
  const misplaced = misplacement(text, finding, EXPECTED[side][field]);
  if (misplaced !== null) return misplaced;
  if (finding.state === "unknown" && isSessionToken(text)) {
    return { ...stale("SESSION_EXPIRED", "Invalid token"), isUnknownSession: true };
  }
  if (finding.state === "unknown" || finding.state === "ended") {
    return invalid(isCounted(finding));
  }
  const { credential } = finding;
  if (side === "agent" && credential.agentId !== request.agentId) {
    return invalid(isCounted(finding));
  }
  if (finding.state === "expired") return stale("SESSION_EXPIRED", "Session token expired");
  if (finding.state === "used_up") return stale("LIMIT_EXCEEDED", "Session token used up");
  const { hash, expiresAtMs, key } = credential;
  if (key !== null && !key.scopes.includes("call")) return noScope(key);
  return expiresAtMs === null
    ? issueSession(store, credential, request.nowMs).then((made) => admit(credential, made))
    : admit(credential, { token: text, hash, expiresAtMs });
};

type Expected = readonly [named: Holder, ...also: Holder[]];

/** An access key stands in an account token's place. */
const EXPECTED: Record<"client" | "agent", Record<"session" | "persistent", Expected>> = {
  client: { persistent: ["account", "key"], session: ["client_session"] },
  agent: { persistent: ["agent"], session: ["agent_session"] },
};

/** The failure that names both kinds, or null if the kind is right or unknown. */
const misplacement = (
  text: string,
  finding: CredentialState,
  expected: Expected,
): LookupFailure | null => {
  const holder = "credential" in finding ? finding.credential.holder : null;
  if (holder !== null && expected.includes(holder)) return null;
  const reading = readToken(text);
  if (!reading.ok) return null;
  // A session token that the store does not know could belong to either side: there is no kind to
  // name.
  const isRightKind = expected.some(
    (each) => (each.endsWith("_session") ? "session" : each) === reading.kind,
  );
  if (holder === null && isRightKind) return null;
  const got = holder === null ? TOKEN_NAMES[reading.kind] : HOLDER_NAMES[holder];
  return {
    ok: false,
    code: "WRONG_TOKEN_KIND",
    error: `Expected ${HOLDER_NAMES[expected[0]]}, got ${got}`,
    counted: isCounted(finding),
  };
};

/**
 * Whether a refusal counts towards the lockout. The contract exempts what was valid once; a live
 * token in the wrong place, or with another agent's identifier, counts like any other failure.
 */
const isCounted = ({ state }: CredentialState): boolean => state === "unknown" || state === "live";

/** By its form and checksum alone. */
const isSessionToken = (text: string): boolean => {
  const reading = readToken(text);
  return reading.ok && reading.kind === "session";
};

const invalid = (counted: boolean): LookupFailure => ({
  ok: false,
  code: "INVALID_TOKEN",
  error: "Invalid token",
  counted,
});

/** Nobody hears this. */
const UNWANTED: LookupFailure = {
  ok: false,
  code: "UNAVAILABLE",
  error: "Nobody waits for the answer",
  counted: false,
};

const noScope = ({ name, scopes }: KeyFacts): LookupFailure => ({
  ok: false,
  code: "WRONG_TOKEN_KIND",
  error: `The access key ${name} has no scope "call", only ${scopes.join(", ")}`,
  counted: false,
});

const stale = (code: "SESSION_EXPIRED" | "LIMIT_EXCEEDED", error: string): LookupFailure => ({
  ok: false,
  code,
  error,
  counted: false,
});

const admit = (credential: Credential, session: Issued): AuthResult => {
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
    : {
        ...common,
        role: "agent",
        agentId: credential.agentId,
        loginNumber: credential.loginNumber,
      };
};
