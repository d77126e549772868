/**
 * Issues tokens. Persistent tokens are derived from a nonce, and a new one ends the previous one;
 * short-lived tokens are random.
 */
import { LOGIN_TTL_S, SESSION_TTL_S } from "@blindrelay/protocol";
import type { MaybePromise } from "../base/maybe-promise.ts";
import { hold } from "../store/advisory-lock.ts";
import { holdKey } from "../store/key-rotation.ts";
import type { Db, Store } from "../store/open.ts";
import { addSession, addWithRoom, makeRoom } from "../store/sessions.ts";
import { addToken, currentToken, type Owner, retireTokens, trimTokens } from "../store/tokens.ts";
import type { Credential } from "./credentials.ts";
import { drawNonce, drawToken, hashToken, type Secrets } from "./secrets.ts";

/** Until the transaction ends, nobody else renews this owner's token. */
export const holdToken = (tx: Db, { userId, agentId }: Owner): MaybePromise<unknown> =>
  hold(tx, `token of ${userId}/${agentId ?? ""}`);

/** Derives and stores a new persistent token. Call it inside the transaction that needs it. */
export const issuePersistent = async (
  db: Db,
  secrets: Secrets,
  owner: Owner,
  nowMs: number,
): Promise<string> => {
  await holdKey(db, secrets.check());
  // Of two concurrent rotations, the second ends what the first made.
  await holdToken(db, owner);
  await retireTokens(db, owner, nowMs);
  await trimTokens(db, owner, nowMs);
  const kind = owner.agentId === null ? "account" : "agent";
  const nonce = drawNonce();
  const token = secrets.persistentToken(kind, owner.agentId ?? owner.userId, nonce);
  await addToken(db, {
    hash: hashToken(token),
    kind,
    user_id: owner.userId,
    agent_id: owner.agentId,
    nonce,
    issued_at: nowMs,
    retired_at: null,
  });
  return token;
};

/**
 * Returns the current persistent token again; null if there is none. Throws if it does not match
 * its hash.
 */
export const repeatPersistent = async (
  db: Db,
  secrets: Secrets,
  owner: Owner,
): Promise<string | null> => {
  const row = await currentToken(db, owner);
  if (row === undefined) return null;
  const token = secrets.persistentToken(row.kind, owner.agentId ?? owner.userId, row.nonce);
  if (hashToken(token) !== row.hash) {
    throw new Error("a derived token does not match its hash: the store was altered");
  }
  return token;
};

export interface Issued {
  readonly token: string;
  readonly hash: string;
  readonly expiresAtMs: number;
}

/**
 * How many session tokens of one credential are valid at a time; as many again are remembered as
 * ended. A device needs one; a script that requests a token at each run must neither fill the store
 * nor lock out its owner's browsers.
 */
const MAX_CLIENT_SESSIONS = 1000;
const MAX_AGENT_SESSIONS = 16;
/** A user at the limit loses this many client sessions at a time. */
const CLIENT_SESSIONS_TOGETHER = 64;
/**
 * The same for a person's logins: more than one-time codes allow within the hour that a login
 * lasts.
 */
const MAX_LOGINS = 200;

/**
 * Makes a session token from a credential. It is valid as long as that credential is, or until too
 * many newer ones exist.
 */
export const issueSession = async (
  store: Store,
  parent: Credential,
  nowMs: number,
): Promise<Issued> => {
  const token = drawToken("session");
  const hash = hashToken(token);
  const expiresAtMs = Math.min(
    nowMs + SESSION_TTL_S * 1000,
    parent.key?.expiresAtMs ?? Number.POSITIVE_INFINITY,
  );
  const [max, together] =
    parent.agentId === null
      ? [MAX_CLIENT_SESSIONS, CLIENT_SESSIONS_TOGETHER]
      : [MAX_AGENT_SESSIONS, 1];
  const session = {
    hash,
    kind: kindOf(parent),
    user_id: parent.userId,
    agent_id: parent.agentId,
    parent: parent.hash,
    limited: 0,
    created_at: nowMs,
    expires_at: expiresAtMs,
  };
  await store.write((tx) => addWithRoom(tx, session, max, nowMs, together));
  return { token, hash, expiresAtMs };
};

/** A relay from before access keys knows none of a key's session tokens, and so refuses them. */
const kindOf = ({ agentId, key }: Credential): "agent" | "client" | "key" => {
  if (agentId !== null) return "agent";
  return key === null ? "client" : "key";
};

/** Makes a person's access token. Call it inside a transaction. */
export const issueLogin = async (
  tx: Db,
  userId: string,
  limited: boolean,
  nowMs: number,
): Promise<Issued> => {
  const token = drawToken("login");
  const hash = hashToken(token);
  const expiresAtMs = nowMs + LOGIN_TTL_S * 1000;
  await makeRoom(tx, userId, MAX_LOGINS, nowMs);
  await addSession(tx, {
    hash,
    kind: "login",
    user_id: userId,
    agent_id: null,
    parent: null,
    limited: limited ? 1 : 0,
    created_at: nowMs,
    expires_at: expiresAtMs,
  });
  return { token, hash, expiresAtMs };
};
