/**
 * The addresses from which users have logged in, so that wrong guesses keep nobody out after a
 * restart (control/known-addresses.ts). An address is stored as an HMAC only.
 */
import { sql } from "kysely";
import { BOUNDS } from "./bounds.ts";
import { forgetRows } from "./forget.ts";
import { hasRow } from "./has-row.ts";
import type { Db } from "./open.ts";

export const isKnownAddress = (db: Db, print: string, sinceMs: number): Promise<boolean> =>
  hasRow(
    db
      .selectFrom("known_addresses")
      .select("print")
      .where("print", "=", print)
      .where("seen_at", ">=", sinceMs),
  );

/**
 * Replaces the one without a login for the longest time, if there are too many. Call it inside the
 * transaction of the login.
 */
export const noteAddress = async (
  tx: Db,
  userId: string,
  print: string,
  nowMs: number,
): Promise<void> => {
  await tx
    .insertInto("known_addresses")
    .values({ print, user_id: userId, seen_at: nowMs })
    .onConflict((conflict) => conflict.column("print").doUpdateSet({ seen_at: nowMs }))
    .execute();
  const kept = BOUNDS.known_addresses.perOwner;
  const excess = await tx
    .selectFrom("known_addresses")
    .select("print")
    .where("user_id", "=", userId)
    .where("print", "!=", print)
    .orderBy("seen_at", "desc")
    .orderBy("print")
    .offset(kept - 1)
    .limit(kept)
    .execute();
  for (const row of excess) {
    await tx.deleteFrom("known_addresses").where("print", "=", row.print).execute();
  }
};

/** Deletes addresses without a login since `beforeMs`. */
export const forgetAddresses = async (db: Db, beforeMs: number): Promise<void> => {
  await forgetRows(db, "known_addresses", "print", sql`seen_at < ${beforeMs}`);
};
