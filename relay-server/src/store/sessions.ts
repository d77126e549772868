/**
 * Random, short-lived tokens by hash: people's access tokens, clients' and agents' session tokens.
 */
import { SESSION_MAX_REQUESTS } from "@blindrelay/protocol";
import { sql } from "kysely";
import { type MaybePromise, whenKnown } from "../base/maybe-promise.ts";
import { hold } from "./advisory-lock.ts";
import { crowdedOwners, forgetOlder, forgetRows } from "./forget.ts";
import { nextLoginNumber } from "./login-numbers.ts";
import type { Db } from "./open.ts";
import { prepared } from "./prepared.ts";
import type { AccessKeyRow, SessionRow } from "./tables.ts";

/** What is asked of a key. */
export type KeyFactsRow = Pick<
  AccessKeyRow,
  "id" | "name" | "scopes" | "selector" | "expires_at" | "last_used_at"
>;

const sessionByHash = prepared((db, { hash }: { hash: string }) =>
  db
    .selectFrom("sessions as session")
    .leftJoin("tokens as token", "token.hash", "session.parent")
    .leftJoin("sessions as login", "login.hash", "session.parent")
    .leftJoin("users as user", "user.id", "session.user_id")
    .leftJoin("access_keys as key", "key.hash", "session.parent")
    .selectAll("session")
    .select(["token.retired_at as token_retired_at", "token.good_until"])
    .select(["login.ended_at as login_ended_at", "user.id as owner", "user.disabled_at"])
    .select(["key.id as key_id", "key.name as key_name", "key.scopes as key_scopes"])
    .select(["key.selector as key_selector", "key.expires_at as key_expires_at"])
    .select(["key.removed_at as key_removed_at", "key.last_used_at as key_last_used_at"])
    .select(nextLoginNumber(db, "session.agent_id").as("login_number"))
    .where("session.hash", "=", hash),
);

/**
 * A session, and the number of a login with it; `ended_at` is also set if the token or login that
 * it was made with has ended, while its user is disabled, and once its user is removed. This is
 * decided only here, so code that ends a token need not find what was just made with it.
 */
export const findSession = (db: Db, hash: string): MaybePromise<FoundSession | undefined> =>
  whenKnown(sessionByHash(db, { hash }), ([row]) => {
    if (row === undefined) return undefined;
    const { token_retired_at, good_until, login_ended_at, owner, disabled_at, ...rest } = row;
    const { key_id, key_name, key_scopes, key_selector, key_expires_at, ...more } = rest;
    const { key_removed_at, key_last_used_at, ...session } = more;
    const token_ended_at = good_until === null ? token_retired_at : null;
    const key =
      key_id === null || key_name === null || key_scopes === null
        ? null
        : {
            id: key_id,
            name: key_name,
            scopes: key_scopes,
            selector: key_selector,
            expires_at: key_expires_at,
            last_used_at: key_last_used_at,
          };
    // A key whose row is gone was removed long ago.
    const key_ended_at = session.kind === "key" && key === null ? 0 : key_removed_at;
    const user_ended_at = owner === null ? session.created_at : disabled_at;
    const ended_at =
      session.ended_at ?? token_ended_at ?? login_ended_at ?? key_ended_at ?? user_ended_at;
    return { ...session, ended_at, key };
  });

export interface FoundSession extends SessionRow {
  readonly login_number: number;
  /** The access key that it was made with, if any. */
  readonly key: KeyFactsRow | null;
}

type NewSession = Omit<SessionRow, "requests_used" | "ended_at">;

const inserted = (db: Db, session: NewSession) =>
  db.insertInto("sessions").values({
    hash: session.hash,
    kind: session.kind,
    user_id: session.user_id,
    agent_id: session.agent_id,
    parent: session.parent,
    limited: session.limited,
    created_at: session.created_at,
    expires_at: session.expires_at,
  });

export const addSession = prepared(inserted);

/** How many excess sessions are ended or deleted at a time. */
const MAX_TOGETHER = 500;

interface CrowdQuery {
  readonly owner: string;
  /** How many rows to skip. */
  readonly offset: number;
}

const madeWith = (db: Db, owner: string) => db.selectFrom("sessions").where("parent", "=", owner);
const loginsOf = (db: Db, owner: string) =>
  db
    .selectFrom("sessions")
    .where("user_id", "=", owner)
    .where("agent_id", "is", null)
    .where("kind", "=", "login");

/** One row if there are more than `offset`: reads only the index. */
const loginBeyond = prepared((db, { owner, offset }: CrowdQuery) =>
  loginsOf(db, owner).select("hash").limit(1).offset(offset),
);
const everybody = (crowd: typeof madeWith) =>
  prepared((db, { owner }: Pick<CrowdQuery, "owner">) =>
    crowd(db, owner)
      .select(["hash", "requests_used", "expires_at", "ended_at"])
      .orderBy("created_at")
      .orderBy("hash"),
  );

/** Sessions with a common limit: those made with one token, or a person's logins. */
const CROWDS = { sessions: everybody(madeWith), logins: everybody(loginsOf) };

/** A session made with a token, and whether that may have too many. */
const addMade = prepared(
  (db, made: NewSession & CrowdQuery & { readonly kept: number; readonly nowMs: number }) => {
    const { owner, offset, kept, nowMs } = made;
    const others = madeWith(db, owner).select("expires_at").limit(1);
    const live = others.where("ended_at", "is", null).where("expires_at", ">", nowMs);
    return inserted(db, made).returning([
      live.offset(offset).as("live"),
      others.offset(kept).as("kept"),
    ]);
  },
);

const endSession = prepared((db, { hash, nowMs }: { hash: string; nowMs: number }) =>
  db.updateTable("sessions").set({ ended_at: nowMs }).where("hash", "=", hash),
);
const forgetSession = prepared((db, { hash }: { hash: string }) =>
  db.deleteFrom("sessions").where("hash", "=", hash),
);
const forgetMadeWith = prepared((db, { parent }: { parent: string }) =>
  db.deleteFrom("sessions").where("parent", "=", parent),
);

/** Makes room for one more login of a user, as below. */
export const makeRoom = (db: Db, owner: string, max: number, nowMs: number): MaybePromise<void> =>
  whenKnown(loginBeyond(db, { owner, offset: max - 1 }), ({ length }) =>
    length === 0 ? undefined : thin(db, "logins", owner, max, nowMs, 1),
  );

/**
 * Adds a session made with a token, so that at most `max` of that token are live and `max` more are
 * remembered as ended. Unused ones are removed first, but for the newest, then the oldest; their
 * links stay open. Of many it makes room for `together`, because it reads them all. Where there is
 * room it is one statement: with PostgreSQL each is a round trip, for which the logins behind wait.
 */
export const addWithRoom = (
  db: Db,
  session: NewSession & { readonly parent: string },
  max: number,
  nowMs: number,
  together: number,
): MaybePromise<void> => {
  const { hash, parent: owner } = session;
  const limits = { owner, offset: max - 1, kept: 2 * max - 1, nowMs };
  return whenKnown(addMade(db, { ...session, ...limits }), ([row]) =>
    row?.live === null && row.kept === null
      ? undefined
      : thin(db, "sessions", owner, max, nowMs, together, hash),
  );
};

/** `added`: is there already, and stays. */
const thin = (
  db: Db,
  crowd: keyof typeof CROWDS,
  owner: string,
  max: number,
  nowMs: number,
  together: number,
  added?: string,
): MaybePromise<void> => {
  // Otherwise two concurrent callers could end the same rows in a different order. Only they wait:
  // logins of several accounts on two nodes, each with room, would deadlock.
  const held = hold(db, `${crowd} of ${owner}`);
  return whenKnown(held, () =>
    whenKnown(CROWDS[crowd](db, { owner }), (rows) => {
      const others = rows.filter(({ hash }) => hash !== added);
      return removeExcess(db, others, max, nowMs, together);
    }),
  );
};

type Made = Pick<SessionRow, "hash" | "requests_used" | "expires_at" | "ended_at">;

const removeExcess = async (
  db: Db,
  rows: readonly Made[],
  max: number,
  nowMs: number,
  together: number,
): Promise<void> => {
  const isLive = (row: Made) => row.ended_at === null && row.expires_at > nowMs;
  const live = rows.filter(isLive);
  const unused = live.filter((row) => row.requests_used === 0);
  // Those that may not have had the time to be used get a quarter of the room.
  const spared = Math.ceil(max / 4);
  const inTurn = [
    ...unused.slice(0, -spared),
    ...live.filter((row) => row.requests_used > 0),
    ...unused.slice(-spared),
  ];
  const ended = live.length < max ? [] : first(inTurn, live.length - max + together);
  const retired = rows.filter((row) => !isLive(row));
  const forgotten = first(retired, retired.length + ended.length - max + together - 1);
  for (const { hash } of ended) await endSession(db, { hash, nowMs });
  for (const { hash, ended_at } of forgotten) {
    // What a login made ends with the login's row, so it is deleted too. A login that merely
    // expired ended nothing.
    if (ended_at !== null) await forgetMadeWith(db, { parent: hash });
    await forgetSession(db, { hash });
  }
};

/** The first `count` rows; an excess from before there was a limit is removed later. */
const first = <Row>(rows: readonly Row[], count: number): Row[] =>
  rows.slice(0, Math.min(Math.max(0, count), MAX_TOGETHER));

/** Ends a login and returns the hashes of the session tokens made with it. */
export const endLogin = async (db: Db, hash: string, nowMs: number): Promise<string[]> => {
  await endSession(db, { hash, nowMs });
  // Whatever is made after this has already ended, so the list is complete.
  const made = await db.selectFrom("sessions").select("hash").where("parent", "=", hash).execute();
  return made.map((row) => row.hash);
};

/** Ends an account's sessions on the client side, except the login that requests it, if any. */
export const endSessions = async (
  db: Db,
  userId: string,
  kinds: readonly ("login" | "client" | "key")[],
  except: string | null,
  nowMs: number,
): Promise<void> => {
  let update = db
    .updateTable("sessions")
    .set({ ended_at: nowMs })
    .where("user_id", "=", userId)
    .where("kind", "in", kinds)
    .where("ended_at", "is", null);
  if (except !== null) update = update.where("hash", "!=", except);
  await update.execute();
};

/** Reserves at most this many requests at once, and at most a quarter of what is left. */
const MAX_BLOCK = 64;

/**
 * Reserves requests of a session token for one node of a cluster; returns their number, 0 if none
 * are left. Only PostgreSQL has several nodes.
 */
export const reserveRequests = async (db: Db, hash: string): Promise<number> => {
  const { rows } = await sql<{ requests: number }>`
    with before as (
      select hash, least(${MAX_BLOCK}, (${SESSION_MAX_REQUESTS} - requests_used + 3) / 4) as requests
      from sessions where hash = ${hash} and requests_used < ${SESSION_MAX_REQUESTS} for update
    )
    update sessions set requests_used = requests_used + before.requests
    from before where sessions.hash = before.hash returning before.requests`.execute(db);
  return Number(rows[0]?.requests ?? 0);
};

/** Adds the requests that this node has counted for a session token since the last time. */
export const addRequestsUsed = prepared(
  (db, { hash, requests }: { hash: string; requests: number }) =>
    db
      .updateTable("sessions")
      .set((of) => ({ requests_used: of("requests_used", "+", requests) }))
      .where("hash", "=", hash),
);

export const forgetSessions = async (db: Db, beforeMs: number): Promise<void> => {
  await forgetRows(db, "sessions", "hash", sql`expires_at < ${beforeMs}`);
};

/**
 * Deletes all but the newest `kept` of each user's ended session tokens. Not logins: what was made
 * with one has ended with its row; and they are few (`makeRoom`).
 */
export const trimSessionsOfUsers = async (db: Db, nowMs: number, kept: number): Promise<void> => {
  for (const userId of await crowdedOwners(db, "sessions", kept)) {
    const isOver = sql`user_id = ${userId} and kind <> 'login' and (
      expires_at < ${nowMs} or ended_at is not null or exists (
        select 1 from tokens as token where token.hash = sessions.parent
        and token.retired_at is not null and token.good_until is null))`;
    await forgetOlder(db, ["sessions", "hash", "created_at"], isOver, kept);
  }
};
