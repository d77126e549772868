/**
 * Identifies a presented token by its form and in the store (section 1): the one look-up behind
 * `/wss` and REST. Form and checksum come first and cost no query.
 */
import { readToken, SESSION_MAX_REQUESTS, TOKEN_NAMES } from "@blindrelay/protocol";
import { type KeyScope, parseKeySelector, type Selector } from "@blindrelay/protocol/selector";
import { type MaybePromise, whenKnown } from "../base/maybe-promise.ts";
import { findKey } from "../store/access-keys.ts";
import type { Db } from "../store/open.ts";
import { type FoundSession, findSession, type KeyFactsRow } from "../store/sessions.ts";
import type { AccessKeyRow, SessionRow } from "../store/tables.ts";
import { findToken } from "../store/tokens.ts";
import { hashToken } from "./secrets.ts";

/** The kind of a token's holder, with the two kinds of session token distinguished. */
export type Holder = "account" | "agent" | "login" | "key" | "client_session" | "agent_session";

/** What to call each holder's token in an error message. */
export const HOLDER_NAMES: { readonly [holder in Holder]: string } = {
  account: TOKEN_NAMES.account,
  agent: TOKEN_NAMES.agent,
  login: TOKEN_NAMES.login,
  key: TOKEN_NAMES.key,
  client_session: "a client's session token (sess_)",
  agent_session: "an agent's session token (sess_)",
};

export interface Credential {
  readonly holder: Holder;
  readonly hash: string;
  readonly userId: string;
  /** Only for agents' tokens. */
  readonly agentId: string | null;
  /** A login that may only enrol TOTP. */
  readonly limited: boolean;
  /** Unix milliseconds; null for persistent tokens. */
  readonly expiresAtMs: number | null;
  readonly requestsUsed: number;
  /** The number of a login of its agent with it, should there be one (store/login-numbers.ts). */
  readonly loginNumber: number;
  /** The access key that it is, or was made with; null: it has the rights of its holder. */
  readonly key: KeyFacts | null;
}

/**
 * Among whose requests those with it wait: apart for access keys, so that an account can end one
 * whatever is sent with it.
 */
export const queueOf = ({ userId, key }: Credential): string =>
  key === null ? userId : `keys of ${userId}`;

/** What an access key allows. */
export interface KeyFacts {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly KeyScope[];
  /** Null: all agents. */
  readonly selector: Selector | null;
  /** Unix milliseconds; null: until it is removed. */
  readonly expiresAtMs: number | null;
  readonly lastUsedAtMs: number | null;
}

export type CredentialState =
  | { readonly state: "live" | "expired" | "used_up"; readonly credential: Credential }
  /** Rotated, deleted, logged out: it was valid once, so its holder is not guessing. */
  | { readonly state: "ended" }
  | { readonly state: "unknown" };

const UNKNOWN: CredentialState = { state: "unknown" };
const ENDED: CredentialState = { state: "ended" };

/** Finds out what a token is currently worth. */
export const findCredential = (
  db: Db,
  text: string,
  nowMs: number,
): MaybePromise<CredentialState> => {
  const reading = readToken(text);
  if (!reading.ok) return UNKNOWN;
  const { kind } = reading;
  if (kind === "e2e" || kind === "push") return UNKNOWN; // the relay has none to compare with
  return lookUp(db, kind, hashToken(text), nowMs);
};

const lookUp = (
  db: Db,
  kind: Holder | "session",
  hash: string,
  nowMs: number,
): MaybePromise<CredentialState> => {
  switch (kind) {
    case "account":
    case "agent":
      return whenKnown(findToken(db, hash), (row) => persistent(row, nowMs));
    case "key":
      return whenKnown(findKey(db, hash), (row) => accessKey(row, nowMs));
    default:
      return whenKnown(findSession(db, hash), (row) => shortLived(row, nowMs));
  }
};

/** Whether a credential that was found is good still: inside a transaction, as of now. */
export const isStillLive = async (
  tx: Db,
  { holder, hash }: Pick<Credential, "holder" | "hash">,
  nowMs: number,
): Promise<boolean> => (await lookUp(tx, holder, hash, nowMs)).state === "live";

const HOLDERS: { readonly [kind in SessionRow["kind"]]: Holder } = {
  login: "login",
  client: "client_session",
  key: "client_session",
  agent: "agent_session",
};

/** Of every persistent token, unless it has something else. */
const LASTING = {
  agentId: null,
  limited: false,
  expiresAtMs: null,
  requestsUsed: 0,
  loginNumber: 0,
  key: null,
} as const;

type Token = Awaited<ReturnType<typeof findToken>>;

const persistent = (row: Token, nowMs: number): CredentialState => {
  if (row === undefined) return UNKNOWN;
  if (row.retired_at !== null && (row.good_until ?? 0) <= nowMs) return ENDED;
  const { kind: holder, hash, user_id: userId, agent_id: agentId, login_number: loginNumber } = row;
  return { state: "live", credential: { ...LASTING, holder, hash, userId, agentId, loginNumber } };
};

const factsOf = (row: KeyFactsRow): KeyFacts => ({
  id: row.id,
  name: row.name,
  scopes: row.scopes.split(" ") as KeyScope[],
  selector: row.selector === null ? null : parseKeySelector(row.selector),
  expiresAtMs: row.expires_at,
  lastUsedAtMs: row.last_used_at,
});

const accessKey = (row: AccessKeyRow | undefined, nowMs: number): CredentialState => {
  if (row === undefined) return UNKNOWN;
  if (row.removed_at !== null || (row.expires_at ?? nowMs + 1) <= nowMs) return ENDED;
  const { hash, user_id: userId } = row;
  return {
    state: "live",
    credential: { ...LASTING, holder: "key", hash, userId, key: factsOf(row) },
  };
};

const shortLived = (row: FoundSession | undefined, nowMs: number): CredentialState => {
  if (row === undefined) return UNKNOWN;
  if (row.ended_at !== null) return ENDED;
  const credential: Credential = {
    holder: HOLDERS[row.kind],
    hash: row.hash,
    userId: row.user_id,
    agentId: row.agent_id,
    limited: row.limited === 1,
    expiresAtMs: row.expires_at,
    requestsUsed: row.requests_used,
    loginNumber: row.login_number,
    key: row.key === null ? null : factsOf(row.key),
  };
  if (row.expires_at <= nowMs) return { state: "expired", credential };
  const usedUp =
    credential.holder === "client_session" && row.requests_used >= SESSION_MAX_REQUESTS;
  return { state: usedUp ? "used_up" : "live", credential };
};
