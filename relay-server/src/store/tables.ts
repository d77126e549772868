/**
 * What the relay stores (section 1): identifiers, times and hashes. No secret is stored in usable
 * form: tokens as SHA-256, the TOTP secret wrapped under the master key, passwords as argon2id,
 * recovery codes as HMAC.
 *
 * Times are milliseconds since 1970, booleans 0 or 1, so that both engines store them alike.
 */
import type { AuditAction } from "@blindrelay/protocol/schema/rest";
import type { Generated, Insertable, Kysely, Selectable } from "kysely";

/** The handle that every query of this folder takes; a transaction is one too. */
export type Db = Kysely<Tables>;

export interface Tables {
  settings: SettingsTable;
  users: UsersTable;
  recovery_codes: RecoveryCodesTable;
  agents: AgentsTable;
  access_keys: AccessKeysTable;
  agent_labels: AgentLabelsTable;
  tokens: TokensTable;
  sessions: SessionsTable;
  idempotency: IdempotencyTable;
  uploads: UploadsTable;
  upload_parts: UploadPartsTable;
  releases: ReleasesTable;
  release_offers: ReleaseOffersTable;
  audit: AuditTable;
  notices: NoticesTable;
  known_addresses: KnownAddressesTable;
}

/** One row per name; see settings.ts. */
interface SettingsTable {
  name: string;
  value: string;
}

interface UsersTable {
  id: string;
  username: string;
  role: "admin" | "user";
  password_hash: string;
  /** Wrapped; null before enrolment. Counts only once `totp_confirmed` is 1. */
  totp_secret: string | null;
  totp_confirmed: Generated<number>;
  /** The 30 s step of the last accepted code: this step and earlier ones are used. */
  totp_last_step: Generated<number>;
  /** Made by enrolment and not confirmed yet; wrapped. */
  totp_pending: string | null;
  /** Wrong codes in a row after a right password, and how long the account is locked for them. */
  totp_failures: Generated<number>;
  totp_rests_until: Generated<number>;
  /** While it is set, the user and their agents cannot log in. */
  disabled_at: Generated<number | null>;
  /** The number of the user's agents, and the bytes of their metadata. Maintained by triggers. */
  agents_held: Generated<number>;
  metadata_bytes: Generated<number>;
  created_at: number;
}

interface RecoveryCodesTable {
  hash: string;
  user_id: string;
}

interface AgentLabelsTable {
  agent_id: string;
  user_id: string;
  key: string;
  value: string;
}

interface AgentsTable {
  agent_id: string;
  user_id: string;
  name: string;
  metadata: string; // JSON
  /** JSON; the same labels are the agent's rows of agent_labels. */
  labels: Generated<string>;
  runtime: string | null;
  firmware_version: string | null;
  last_seen: number | null;
  /** The node of a cluster that holds its link, as last recorded; otherwise null. */
  node: Generated<string | null>;
  created_at: number;
}

/** Persistent tokens, derived from the master key: an owner's newest has no `retired_at`. */
interface TokensTable {
  hash: string;
  kind: "account" | "agent";
  user_id: string;
  agent_id: string | null;
  nonce: string;
  issued_at: number;
  /**
   * Kept for RETIRED_TOKEN_KEPT_S after this, so that a stale device can be told from a guesser.
   */
  retired_at: number | null;
  /** How long a retired token stays valid after a rotation of the master key; null: it does not. */
  good_until: Generated<number | null>;
}

/** See store/access-keys.ts. */
interface AccessKeysTable {
  id: string;
  hash: string;
  user_id: string;
  name: string;
  /** Separated by spaces. */
  scopes: string;
  /** Null: all agents. */
  selector: string | null;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  removed_at: number | null;
}

/** Random, short-lived tokens, issued for a login or a persistent token. */
interface SessionsTable {
  hash: string;
  /**
   * `login` is a person's access token, the others are session tokens; `key`: of a client, made
   * with an access key.
   */
  kind: "login" | "client" | "agent" | "key";
  user_id: string;
  agent_id: string | null;
  /** The hash of the token that it was made with. */
  parent: string | null;
  /** A login that may only enrol TOTP. */
  limited: Generated<number>;
  requests_used: Generated<number>;
  created_at: number;
  expires_at: number;
  ended_at: number | null;
}

/** A POST with an Idempotency-Key. */
interface IdempotencyTable {
  user_id: string;
  key: string;
  /** HMAC of method, path and body. */
  request: string;
  /** Sealed under the master key; null until there is one. */
  answer: string | null;
  created_at: number;
}

interface UploadsTable {
  id: string;
  started_at: number;
}

interface UploadPartsTable {
  upload_id: string;
  part: number;
  bytes: Uint8Array;
}

interface ReleasesTable {
  id: string;
  runtime: string;
  channel: string;
  version: string;
  status: "draft" | "published" | "yanked";
  notes: string;
  /** Null until the artifact was uploaded, like everything about it. */
  upload_id: string | null;
  size: number | null;
  sha256: string | null;
  signature: string | null;
  key_id: string | null;
  /** Of the second signed text; null without it. */
  list: Generated<number | null>;
  /** Unix seconds. */
  not_after: Generated<number | null>;
  /** JSON: ReleaseSignature[]. */
  signatures: Generated<string>;
  /** The percentage of devices that are offered it. */
  percent: number;
  paused: number;
  created_at: number;
  published_at: number | null;
}

/** A device that was offered a release, and when it was first known to run it. */
interface ReleaseOffersTable {
  release_id: string;
  agent_id: string;
  offered_at: number;
  confirmed_at: number | null;
  /** When it logged in with an older version, having run the release. */
  left_at: Generated<number | null>;
}

/** The audit log; see store/audit.ts. */
interface AuditTable {
  id: string;
  at: number;
  /** Both null: done by a command on the data folder. */
  actor_id: string | null;
  actor: string | null;
  action: AuditAction;
  subject: string;
  detail: string; // JSON
}

/** See store/notices.ts. */
interface NoticesTable {
  /** In the order of posting; PostgreSQL may show a higher one first. */
  seq: Generated<number>;
  kind:
    | "unlock"
    | "end_agent"
    | "forget_agent"
    | "end_clients"
    | "end_user"
    | "end_session"
    | "end_key"
    | "agent_labels";
  /**
   * An address or user name, the identifier of an agent, a user or an access key, or the hash of a
   * session token.
   */
  subject: string;
  at: number;
  /** Whose change it was; null: a command's, or an earlier version's. */
  user_id: string | null;
}

/** A user has logged in from there; see store/known-addresses.ts. */
interface KnownAddressesTable {
  /** HMAC of name and address. */
  print: string;
  user_id: string;
  /** Of the last login. */
  seen_at: number;
}

export type NoticeRow = Selectable<NoticesTable>;
export type UserRow = Selectable<UsersTable>;
export type AgentRow = Selectable<AgentsTable>;
export type AccessKeyRow = Selectable<AccessKeysTable>;
export type TokenRow = Selectable<TokensTable>;
export type NewToken = Insertable<TokensTable>;
export type IdempotencyRow = Selectable<IdempotencyTable>;
export type ReleaseRow = Selectable<ReleasesTable>;
export type AuditRow = Selectable<AuditTable>;
export type SessionRow = Selectable<SessionsTable>;
