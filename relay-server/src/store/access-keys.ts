/**
 * Access keys: tokens of an account with scopes, by hash (section 1). A removed one stays for a
 * while, as retired tokens do.
 */
import { MAX_KEYS } from "@blindrelay/protocol/schema/rest";
import { sql } from "kysely";
import { type MaybePromise, whenKnown } from "../base/maybe-promise.ts";
import { hold } from "./advisory-lock.ts";
import { forgetRows } from "./forget.ts";
import { hasRow } from "./has-row.ts";
import { type Position, pageAfter } from "./keyset.ts";
import type { Db } from "./open.ts";
import { prepared } from "./prepared.ts";
import type { AccessKeyRow } from "./tables.ts";

const keyByHash = prepared((db, { hash }: { hash: string }) =>
  db
    .selectFrom("access_keys as key")
    .leftJoin("users as user", "user.id", "key.user_id")
    .selectAll("key")
    .select(["user.id as owner", "user.disabled_at"])
    .where("key.hash", "=", hash),
);

/** A key; `removed_at` is also set while its user is disabled, and once its user is removed. */
export const findKey = (db: Db, hash: string): MaybePromise<AccessKeyRow | undefined> =>
  whenKnown(keyByHash(db, { hash }), ([row]) => {
    if (row === undefined) return undefined;
    const { owner, disabled_at, ...key } = row;
    const ended_at = owner === null ? key.created_at : disabled_at;
    return { ...key, removed_at: key.removed_at ?? ended_at };
  });

/** Why a key was not added. */
export type KeyRefusal = "name is taken" | "too many";

const lockOf = (userId: string): string => `access keys of ${userId}`;

/**
 * Whether a valid key of a user chooses agents; none is made before the transaction ends.
 */
export const hasSelectors = async (tx: Db, userId: string): Promise<boolean> => {
  await hold(tx, lockOf(userId));
  return hasRow(
    tx
      .selectFrom("access_keys")
      .select("id")
      .where("user_id", "=", userId)
      .where("removed_at", "is", null)
      .where("selector", "is not", null)
      .limit(1),
  );
};

/** Adds a key, and forgets the oldest removed ones beyond as many as may be valid. */
export const addKey = async (
  tx: Db,
  key: Omit<AccessKeyRow, "last_used_at" | "removed_at">,
): Promise<KeyRefusal | null> => {
  await hold(tx, lockOf(key.user_id));
  const { count } = await tx
    .selectFrom("access_keys")
    .select((of) => of.fn.countAll<number>().as("count"))
    .where("user_id", "=", key.user_id)
    .where("removed_at", "is", null)
    .executeTakeFirstOrThrow();
  if (Number(count) >= MAX_KEYS) return "too many";
  await tx
    .deleteFrom("access_keys")
    .where("id", "in", (of) =>
      of
        .selectFrom("access_keys")
        .select("id")
        .where("user_id", "=", key.user_id)
        .where("removed_at", "is not", null)
        .orderBy("removed_at", "desc")
        .limit(MAX_KEYS)
        .offset(MAX_KEYS - 1),
    )
    .execute();
  const added = tx
    .insertInto("access_keys")
    .values({ ...key, last_used_at: null, removed_at: null })
    .onConflict((conflict) =>
      conflict.columns(["user_id", "name"]).where("removed_at", "is", null).doNothing(),
    )
    .returning("id");
  return (await hasRow(added)) ? null : "name is taken";
};

/** Up to `limit` keys of a user after a position, oldest first. */
export const listKeys = (
  db: Db,
  userId: string,
  after: Position | null,
  limit: number,
): Promise<AccessKeyRow[]> => {
  const query = db
    .selectFrom("access_keys")
    .selectAll()
    .where("user_id", "=", userId)
    .where("removed_at", "is", null);
  return pageAfter(query, ["created_at", "asc"], "id", after, limit);
};

/** Removes a key; undefined if the user has none with that id. */
export const removeKey = (
  tx: Db,
  userId: string,
  id: string,
  nowMs: number,
): Promise<AccessKeyRow | undefined> =>
  tx
    .updateTable("access_keys")
    .set({ removed_at: nowMs })
    .where("user_id", "=", userId)
    .where("id", "=", id)
    .where("removed_at", "is", null)
    .returningAll()
    .executeTakeFirst();

export const removeAllKeys = async (tx: Db, userId: string, nowMs: number): Promise<void> => {
  await tx
    .updateTable("access_keys")
    .set({ removed_at: nowMs })
    .where("user_id", "=", userId)
    .where("removed_at", "is", null)
    .execute();
};

export const noteKeyUsed = async (db: Db, id: string, nowMs: number): Promise<void> => {
  await db.updateTable("access_keys").set({ last_used_at: nowMs }).where("id", "=", id).execute();
};

/** Deletes keys that were removed before `beforeMs`. Expired ones stay in their account's list. */
export const forgetKeys = async (db: Db, beforeMs: number): Promise<void> => {
  await forgetRows(db, "access_keys", "id", sql`removed_at < ${beforeMs}`);
};
