/**
 * Tasks for every relay that runs on this store, because they concern its memory: end links that a
 * rotation, a deletion, a logout or a command has revoked, or lift a lockout. Posted in the same
 * transaction as the change; each relay reads them every second (control/notice-reader.ts).
 */
import { sql } from "kysely";
import { forgetRows } from "./forget.ts";
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

/** Limits one statement: engines limit their parameters. */
const MAX_TOGETHER = 500;

/** Call it inside the transaction, and pass the result to `links.act` after it. */
export const postNotice = async (
  tx: Db,
  kind: Notice["kind"],
  subject: string,
  nowMs: number,
): Promise<Notice> => {
  const [notice] = await postNotices(tx, kind, [subject], nowMs);
  return notice as Notice;
};

export const postNotices = async (
  tx: Db,
  kind: Notice["kind"],
  subjects: readonly string[],
  nowMs: number,
): Promise<Notice[]> => {
  const posted: Notice[] = [];
  for (let at = 0; at < subjects.length; at += MAX_TOGETHER) {
    const rows = subjects
      .slice(at, at + MAX_TOGETHER)
      .map((subject) => ({ kind, subject, at: nowMs }));
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

/** Notices with a number higher than `after`, posted at `sinceMs` or later, in order. */
const listNotices = (db: Db, after: number, sinceMs: number, limit: number): Promise<Notice[]> =>
  db
    .selectFrom("notices")
    .select(["seq", "kind", "subject", "at"])
    .where("seq", ">", after)
    .where("at", ">=", sinceMs)
    .orderBy("seq")
    .limit(limit)
    .execute();

/** The highest number so far; 0 before the first. */
const lastNotice = async (db: Db): Promise<number> => {
  const { last } = await db
    .selectFrom("notices")
    .select((of) => of.fn.max("seq").as("last"))
    .executeTakeFirstOrThrow();
  return Number(last ?? 0);
};

export const noticesIn = (db: Db): NoticeSource => ({
  last: () => lastNotice(db),
  list: (after, sinceMs, limit) => listNotices(db, after, sinceMs, limit),
});

/**
 * Deletes notices from before `beforeMs`; running nodes have long since read them. The last one
 * stays: without it, nodes could not tell that the database has lost some.
 */
export const forgetNotices = async (db: Db, beforeMs: number): Promise<void> => {
  const isOld = sql`at < ${beforeMs} and seq < (select max(seq) from notices)`;
  await forgetRows(db, "notices", "seq", isOld);
};
