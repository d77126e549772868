/**
 * Users, agents, tokens and sessions, which section 1 requires the relay to remember, and releases,
 * notices and the audit log. Stores of commit 03d9d31 came to it in fourteen steps.
 */
import { type Kysely, PostgresAdapter, sql } from "kysely";

const TABLES = [
  "settings (name text primary key, value text not null)",
  `users (
    id text primary key,
    username text not null unique,
    role text not null,
    password_hash text not null,
    totp_secret text,
    totp_confirmed integer default 0 not null,
    totp_last_step bigint default 0 not null,
    totp_pending text,
    totp_failures integer default 0 not null,
    totp_rests_until bigint default 0 not null,
    created_at bigint not null,
    disabled_at bigint,
    agents_held integer default 0 not null,
    metadata_bytes bigint default 0 not null
  )`,
  `recovery_codes (
    hash text primary key,
    user_id text not null references users (id) on delete cascade
  )`,
  `agents (
    agent_id text primary key,
    user_id text not null references users (id) on delete cascade,
    name text not null,
    metadata text not null,
    runtime text,
    firmware_version text,
    last_seen bigint,
    created_at bigint not null,
    node text
  )`,
  // Tokens, sessions and the log's entries outlive what they name, so they have no foreign keys.
  `tokens (
    hash text primary key,
    kind text not null,
    user_id text not null,
    agent_id text,
    nonce text not null,
    issued_at bigint not null,
    retired_at bigint,
    good_until bigint
  )`,
  `sessions (
    hash text primary key,
    kind text not null,
    user_id text not null,
    agent_id text,
    parent text,
    limited integer default 0 not null,
    requests_used integer default 0 not null,
    created_at bigint not null,
    expires_at bigint not null,
    ended_at bigint
  )`,
  `audit (
    id text primary key,
    at bigint not null,
    actor_id text,
    actor text,
    action text not null,
    subject text not null,
    detail text not null
  )`,
  // Answers to POST requests that carried an Idempotency-Key, sealed, for a day.
  `idempotency (
    user_id text not null references users (id) on delete cascade,
    key text not null,
    request text not null,
    answer text,
    created_at bigint not null,
    constraint idempotency_key primary key (user_id, key)
  )`,
  // An artifact is complete once a release names its upload.
  "uploads (id text primary key, started_at bigint not null)",
  `upload_parts (
    upload_id text not null references uploads (id) on delete cascade,
    part integer not null,
    bytes bytea not null, -- SQLite accepts any name for a type
    constraint upload_parts_key primary key (upload_id, part)
  )`,
  `releases (
    id text primary key,
    runtime text not null,
    channel text not null,
    version text not null,
    status text not null,
    notes text not null,
    upload_id text references uploads (id),
    size bigint,
    sha256 text,
    signature text,
    key_id text,
    percent integer not null,
    paused integer not null,
    created_at bigint not null,
    published_at bigint,
    constraint releases_version unique (runtime, channel, version)
  )`,
  `release_offers (
    release_id text not null references releases (id) on delete cascade,
    agent_id text not null references agents (agent_id) on delete cascade,
    offered_at bigint not null,
    confirmed_at bigint,
    constraint release_offers_key primary key (release_id, agent_id)
  )`,
];

const INDEXES = [
  // Even after two concurrent rotations an owner has one valid token.
  `unique index tokens_one_live on tokens (user_id, coalesce(agent_id, ''))
    where retired_at is null`,
  "index tokens_of_owner on tokens (user_id, agent_id)",
  "index sessions_of_owner on sessions (user_id, agent_id)",
  "index sessions_of_parent on sessions (parent)",
  "index sessions_by_expiry on sessions (expires_at)",
  // Shows whether a token has made too many.
  "index sessions_live on sessions (parent, expires_at) where ended_at is null",
  "index audit_by_time on audit (at, id)",
  // Finds what exceeds an actor's newest entries, so that it can be removed a few rows at a time.
  "index audit_by_actor on audit (actor_id, at)",
  "index release_offers_of_agent on release_offers (agent_id)",
];

/** Lists are filtered in this index: metadata may be 8 KiB a row, and is read for one page only. */
const LISTED = "user_id, created_at, agent_id, name, runtime, firmware_version";

/**
 * What an event on `agents` adds to its user's totals, which the database itself maintains: adding
 * up 10,000 agents at each change took 20 ms of the thread that forwards messages.
 */
const HELD = [
  ["insert", "insert", "1", "octet_length(new.metadata)"],
  ["delete", "delete", "-1", "-octet_length(old.metadata)"],
  ["update", "update of metadata", "0", "octet_length(new.metadata) - octet_length(old.metadata)"],
] as const;

const triggers = (isPostgres: boolean): string[] =>
  HELD.flatMap(([name, event, agents, bytes]) => {
    const owner = name === "delete" ? "old" : "new";
    const body = `begin
      update users set agents_held = agents_held + ${agents}, metadata_bytes = metadata_bytes + ${bytes}
      where id = ${owner}.user_id;`;
    const trigger = `trigger agents_held_${name} after ${event} on agents for each row`;
    if (!isPostgres) return [`${trigger} ${body} end`];
    return [
      `function agents_held_${name}() returns trigger language plpgsql as '${body} return null; end'`,
      `${trigger} execute function agents_held_${name}()`,
    ];
  });

export const up = async (db: Kysely<unknown>): Promise<void> => {
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
  const number = isPostgres ? "bigserial primary key" : "integer primary key autoincrement";
  const notices = `notices (seq ${number}, kind text not null, subject text not null, at bigint not null)`;
  // SQLite would look up each row for the node; PostgreSQL would write the index at each login.
  const lists = `index agent_lists on agents (${LISTED}${isPostgres ? "" : ", node"})`;
  for (const made of [
    ...[...TABLES, notices].map((table) => `table ${table}`),
    ...INDEXES,
    lists,
    ...triggers(isPostgres),
    // Logins of agents are numbered over all nodes; a SQLite store has one.
    ...(isPostgres ? ["sequence agent_epochs"] : []),
  ]) {
    await sql.raw(`create ${made}`).execute(db);
  }
};
