/**
 * Tasks for every relay that runs on this store, because they concern its memory: end links that a
 * rotation, a deletion, a logout or a command has revoked, or lift a lockout. Posted in the same
 * transaction as the change; each relay reads them every second (control/notice-reader.ts).
 */
import { sql } from "kysely";
import { crowdedOwners, forgetOlder, forgetRows } from "./forget.ts";
import type { Db } from "./open.ts";
import type { NoticeRow } from "./tables.ts";

export type Notice = Pick<NoticeRow, "seq" | "kind" | "subject" | "at">;

/** The notices in the store, for the reader of a relay. */
export interface NoticeSource {
  /** The highest number; 0: there are none. */
  last(): Promise<number>;
  /** In order: numbers higher than `after`, posted at `sinceMs` or later. */
  list(after: number, sinceMs: number, limit: number): Promise<Notice[]>;
}

/** A node may not have read a newer one, whoever posted how many. */
const UNREAD_MS = 300_000;
/** Limits one statement: engines limit their parameters. */
const MAX_TOGETHER = 500;

/**
 * Call it inside the transaction, and pass the result to `links.act` after it. `userId`: whose
 * change it is; null: a command's.
 */
export const postNotices = async (
  tx: Db,
  kind: Notice["kind"],
  subjects: readonly string[],
  nowMs: number,
  userId: string | null,
): Promise<Notice[]> => {
  const posted: Notice[] = [];
  for (let at = 0; at < subjects.length; at += MAX_TOGETHER) {
    const rows = subjects
      .slice(at, at + MAX_TOGETHER)
      .map((subject) => ({ kind, subject, at: nowMs, user_id: userId }));
    posted.push(
      ...(await tx
        .insertInto("notices")
        .values(rows)
        .returning(["seq", "kind", "subject", "at"])
        .execute()),
    );
  }
  return posted;
};

export const noticesIn = (db: Db): NoticeSource => ({
  last: async () => {
    const { last } = await db
      .selectFrom("notices")
      .select((of) => of.fn.max("seq").as("last"))
      .executeTakeFirstOrThrow();
    return Number(last ?? 0);
  },
  list: (after, sinceMs, limit) =>
    db
      .selectFrom("notices")
      .select(["seq", "kind", "subject", "at"])
      .where("seq", ">", after)
      .where("at", ">=", sinceMs)
      .orderBy("seq")
      .limit(limit)
      .execute(),
});

/**
 * Deletes notices from before `beforeMs`; running nodes have long since read them. The newest of
 * all stays: without it, nodes could not tell that the database has lost some.
 */
export const forgetNotices = async (db: Db, beforeMs: number): Promise<void> => {
  const newest = sql`(select max(seq) from notices)`;
  await forgetRows(db, "notices", "seq", sql`at < ${beforeMs} and seq < ${newest}`);
};

/**
 * Deletes all but the newest `kept` of each user's notices that every node has had time to read.
 */
export const trimNoticesOfUsers = async (db: Db, nowMs: number, kept: number): Promise<void> => {
  for (const userId of await crowdedOwners(db, "notices", kept)) {
    const isRead = sql`at < ${nowMs - UNREAD_MS}`;
    await forgetOlder(db, ["notices", "seq", "seq"], sql`user_id = ${userId}`, kept, isRead);
  }
};
