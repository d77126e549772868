/** POST requests with an Idempotency-Key and their answers, per user and for a limited time. */

import { hasRow } from "./has-row.ts";
import type { Db } from "./open.ts";
import type { IdempotencyRow } from "./tables.ts";

export const findIdempotent = (
  db: Db,
  userId: string,
  key: string,
): Promise<IdempotencyRow | undefined> =>
  db
    .selectFrom("idempotency")
    .selectAll()
    .where("user_id", "=", userId)
    .where("key", "=", key)
    .executeTakeFirst();

/** Records a request before it is executed; false if the key is taken. */
export const claimIdempotent = (db: Db, row: Omit<IdempotencyRow, "answer">): Promise<boolean> =>
  hasRow(
    db
      .insertInto("idempotency")
      .values({ ...row, answer: null })
      .onConflict((conflict) => conflict.columns(["user_id", "key"]).doNothing())
      .returning("key"),
  );

export const writeIdempotentAnswer = async (
  db: Db,
  userId: string,
  key: string,
  answer: string,
): Promise<void> => {
  await db
    .updateTable("idempotency")
    .set({ answer })
    .where("user_id", "=", userId)
    .where("key", "=", key)
    .execute();
};

/** Deletes one key, because its request did not take effect. */
export const dropIdempotent = async (db: Db, userId: string, key: string): Promise<void> => {
  await db.deleteFrom("idempotency").where("user_id", "=", userId).where("key", "=", key).execute();
};

/** Between an access key's id and what it sent, which has no space. */
const OF_ACCESS_KEYS = "% %";

/**
 * Deletes a user's keys from before `beforeMs`, and all but the newest `kept` of the others: of
 * those that access keys sent, or of the account's own, which no access key displaces.
 */
export const trimIdempotent = async (
  db: Db,
  userId: string,
  ofAccessKeys: boolean,
  beforeMs: number,
  kept: number,
): Promise<void> => {
  const which = ofAccessKeys ? "like" : "not like";
  await db
    .deleteFrom("idempotency")
    .where("user_id", "=", userId)
    .where("created_at", "<", beforeMs)
    .execute();
  const oldestKept = await db
    .selectFrom("idempotency")
    .select("created_at")
    .where("user_id", "=", userId)
    .where("key", which, OF_ACCESS_KEYS)
    .orderBy("created_at", "desc")
    .offset(kept - 1)
    .limit(1)
    .executeTakeFirst();
  if (oldestKept === undefined) return;
  await db
    .deleteFrom("idempotency")
    .where("user_id", "=", userId)
    .where("key", which, OF_ACCESS_KEYS)
    .where("created_at", "<", oldestKept.created_at)
    .execute();
};

export const forgetIdempotent = async (db: Db, beforeMs: number): Promise<void> => {
  await db.deleteFrom("idempotency").where("created_at", "<", beforeMs).execute();
};
