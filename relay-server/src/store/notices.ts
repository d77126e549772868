/**
 * What a command tells every relay that runs on this store, because it concerns what they hold in
 * memory: `unlock` lifts the lock-out of an address or a user name, `end_clients` ends the links of
 * a user's clients.
 */
import { randomUUID } from "node:crypto";
import type { Db } from "./open.ts";
import type { NoticeRow } from "./tables.ts";

export const postNotice = async (
  db: Db,
  kind: NoticeRow["kind"],
  subject: string,
  nowMs: number,
): Promise<void> => {
  await db.insertInto("notices").values({ id: randomUUID(), kind, subject, at: nowMs }).execute();
};

export const listNotices = (db: Db): Promise<NoticeRow[]> =>
  db.selectFrom("notices").selectAll().orderBy("at").execute();

/** Forgets notices from before `beforeMs`; whoever runs has read them long since. */
export const forgetNotices = async (db: Db, beforeMs: number): Promise<void> => {
  await db.deleteFrom("notices").where("at", "<", beforeMs).execute();
};
