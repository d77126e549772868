/**
 * Random, short-lived tokens by hash: people's access tokens, clients' and agents' session tokens.
 */
import { hold } from "./hold.ts";
import type { Db } from "./open.ts";
import type { SessionRow } from "./tables.ts";

/**
 * A session as it stands; `ended_at` is set too where the token or login that it was made with has
 * ended, and while its user is disabled. One place decides that, so nobody who ends a token has to
 * find what was just made with it.
 */
export const findSession = async (db: Db, hash: string): Promise<SessionRow | undefined> => {
  const row = await db
    .selectFrom("sessions as session")
    .leftJoin("tokens as token", "token.hash", "session.parent")
    .leftJoin("sessions as login", "login.hash", "session.parent")
    .leftJoin("users as user", "user.id", "session.user_id")
    .selectAll("session")
    .select(["token.retired_at as token_retired_at", "token.good_until"])
    .select(["login.ended_at as login_ended_at", "user.disabled_at"])
    .where("session.hash", "=", hash)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { token_retired_at, good_until, login_ended_at, disabled_at, ...session } = row;
  const token_ended_at = good_until === null ? token_retired_at : null;
  const ended_at = session.ended_at ?? token_ended_at ?? login_ended_at ?? disabled_at;
  return { ...session, ended_at };
};

export const addSession = async (
  db: Db,
  session: Omit<SessionRow, "requests_used" | "ended_at">,
): Promise<void> => {
  await db.insertInto("sessions").values(session).execute();
};

/** Bounds one statement: engines limit their parameters. */
const MAX_TOGETHER = 500;

/** Which sessions share one bound: those made with one token, or a person's logins. */
export type Crowd = { readonly madeWith: string } | { readonly loginsOf: string };

/**
 * Makes room for one more session, so that at most `max` of its crowd are live and `max` more are
 * known as ended. Those that nobody used go first, then the oldest; links that they hold go on.
 */
export const makeRoom = async (db: Db, crowd: Crowd, max: number, nowMs: number): Promise<void> => {
  // Two who make room in one crowd at once would end the same rows, in another order.
  const name =
    "madeWith" in crowd ? `sessions of ${crowd.madeWith}` : `logins of ${crowd.loginsOf}`;
  await hold(db, name);
  const all = db
    .selectFrom("sessions")
    .select(["hash", "requests_used", "expires_at", "ended_at"])
    .orderBy("created_at")
    .orderBy("hash");
  const rows = await ("madeWith" in crowd
    ? all.where("parent", "=", crowd.madeWith)
    : all
        .where("user_id", "=", crowd.loginsOf)
        .where("agent_id", "is", null)
        .where("kind", "=", "login")
  ).execute();
  if (rows.length < max) return;
  const isLive = (row: (typeof rows)[number]) => row.ended_at === null && row.expires_at > nowMs;
  const live = rows.filter(isLive);
  const unusedFirst = [
    ...live.filter((row) => row.requests_used === 0),
    ...live.filter((row) => row.requests_used > 0),
  ];
  const ended = first(unusedFirst, live.length + 1 - max);
  const retired = rows.filter((row) => !isLive(row));
  const forgotten = first(retired, retired.length + ended.length - max);
  if (ended.length > 0) {
    const them = hashes(ended);
    await db.updateTable("sessions").set({ ended_at: nowMs }).where("hash", "in", them).execute();
  }
  // What a login made ends by the login's row, and goes with it. One that just expired ended
  // nothing.
  const enders = hashes(forgotten.filter((row) => row.ended_at !== null));
  if (enders.length > 0) await db.deleteFrom("sessions").where("parent", "in", enders).execute();
  if (forgotten.length > 0) {
    await db.deleteFrom("sessions").where("hash", "in", hashes(forgotten)).execute();
  }
};

/** Of the first `count` rows; of a crowd from before there was a bound, the rest has to wait. */
const first = <Row>(rows: readonly Row[], count: number): Row[] =>
  rows.slice(0, Math.min(Math.max(0, count), MAX_TOGETHER));

const hashes = (rows: readonly { hash: string }[]): string[] => rows.map(({ hash }) => hash);

/** Ends a login and answers the hashes of the session tokens made with it. */
export const endLogin = async (db: Db, hash: string, nowMs: number): Promise<string[]> => {
  await db.updateTable("sessions").set({ ended_at: nowMs }).where("hash", "=", hash).execute();
  // Whatever is made after this is born ended, so the list is complete.
  const made = await db.selectFrom("sessions").select("hash").where("parent", "=", hash).execute();
  return made.map((row) => row.hash);
};

/** Ends what an account's client side holds, but for one login where it is the one that asks. */
export const endSessions = async (
  db: Db,
  userId: string,
  kinds: readonly ("login" | "client")[],
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

/** Adds requests that a session token has used since they were last added, by this node. */
export const addRequestsUsed = async (db: Db, hash: string, requests: number): Promise<void> => {
  await db
    .updateTable("sessions")
    .set((of) => ({ requests_used: of("requests_used", "+", requests) }))
    .where("hash", "=", hash)
    .execute();
};

/** Forgets sessions that expired before `beforeMs`. */
export const forgetSessions = async (db: Db, beforeMs: number): Promise<void> => {
  await db.deleteFrom("sessions").where("expires_at", "<", beforeMs).execute();
};
