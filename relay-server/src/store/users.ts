/** Users: their passwords' hashes, second factor and roles, and the list that admins read. */

import { hasRow } from "./has-row.ts";
import { type Position, pageAfter } from "./keyset.ts";
import type { Db } from "./open.ts";
import type { UserRow } from "./tables.ts";

/** Adds a user; false if the name is taken. */
export const addUser = (
  db: Db,
  user: Pick<
    UserRow,
    "id" | "username" | "role" | "password_hash" | "totp_secret" | "totp_confirmed" | "created_at"
  >,
): Promise<boolean> =>
  hasRow(
    db
      .insertInto("users")
      .values(user)
      .onConflict((conflict) => conflict.column("username").doNothing())
      .returning("id"),
  );

export const findUser = (db: Db, id: string): Promise<UserRow | undefined> =>
  db.selectFrom("users").selectAll().where("id", "=", id).executeTakeFirst();

/** A user who may log in; undefined also if the user is disabled. */
export const findUserByName = (db: Db, username: string): Promise<UserRow | undefined> =>
  db
    .selectFrom("users")
    .selectAll()
    .where("username", "=", username)
    .where("disabled_at", "is", null)
    .executeTakeFirst();

/**
 * Inside a transaction: whether password and second factor are still those that were checked and
 * their user is not disabled. This stays true until the commit, because the row is written and
 * thereby locked.
 */
export const holdFactors = (
  tx: Db,
  { id, password_hash, totp_secret }: Pick<UserRow, "id" | "password_hash" | "totp_secret">,
): Promise<boolean> =>
  hasRow(
    tx
      .updateTable("users")
      .set({ password_hash })
      .where("id", "=", id)
      .where("password_hash", "=", password_hash)
      .where("totp_secret", totp_secret === null ? "is" : "=", totp_secret)
      .where("disabled_at", "is", null)
      .returning("id"),
  );

/**
 * Marks a code's step as used; false if it, or a later one, already was. `stepNow` is the current
 * step by the clock of the node furthest ahead: a used step beyond it was used while that clock was
 * ahead, and blocks nobody.
 */
export const useTotpStep = (db: Db, id: string, step: number, stepNow: number): Promise<boolean> =>
  hasRow(
    db
      .updateTable("users")
      .set({ totp_last_step: step, totp_failures: 0, totp_rests_until: 0 })
      .where("id", "=", id)
      .where((is) =>
        is.or([is("totp_last_step", "<", step), is("totp_last_step", ">", stepNow + 1)]),
      )
      .returning("id"),
  );

/** How long an account is locked after how many wrong codes in a row, in milliseconds. */
interface TotpLockouts {
  /** After the first failures, in order; the last one applies to all further ones. */
  readonly ms: readonly number[];
  readonly nowMs: number;
}

/** Counts a wrong code, whichever node saw it, and locks the account if necessary. */
export const failTotp = async (db: Db, id: string, lockouts: TotpLockouts): Promise<void> => {
  const { ms, nowMs } = lockouts;
  await db
    .updateTable("users")
    .set((of) => {
      let until = of.case().when("totp_failures", "<", 0).then(of.ref("totp_rests_until"));
      for (const [failures, lockoutMs] of ms.entries()) {
        if (lockoutMs === 0) continue;
        const counts = failures === ms.length - 1 ? ">=" : "=";
        until = until.when("totp_failures", counts, failures).then(of.val(nowMs + lockoutMs));
      }
      return {
        totp_failures: of("totp_failures", "+", 1),
        totp_rests_until: until.else(of.ref("totp_rests_until")).end(),
      };
    })
    .where("id", "=", id)
    .execute();
};

/** A second factor was correct: earlier failures no longer count. */
export const forgiveTotp = async (db: Db, id: string): Promise<void> => {
  await changeUser(db, id, { totp_failures: 0, totp_rests_until: 0 });
};

/**
 * Makes the pending secret the valid one, with `step` already used. False: another request was
 * quicker.
 */
export const confirmTotp = (db: Db, id: string, pending: string, step: number): Promise<boolean> =>
  hasRow(
    db
      .updateTable("users")
      .set({
        totp_secret: pending,
        totp_confirmed: 1,
        totp_pending: null,
        totp_last_step: step,
        totp_failures: 0,
        totp_rests_until: 0,
      })
      .where("id", "=", id)
      .where("totp_pending", "=", pending)
      .returning("id"),
  );

export const removeTotp = async (db: Db, id: string): Promise<void> => {
  await changeUser(db, id, { totp_secret: null, totp_confirmed: 0, totp_pending: null });
  await replaceRecoveryCodes(db, id, []);
};

export const replaceRecoveryCodes = async (
  db: Db,
  userId: string,
  hashes: readonly string[],
): Promise<void> => {
  await db.deleteFrom("recovery_codes").where("user_id", "=", userId).execute();
  if (hashes.length === 0) return;
  await db
    .insertInto("recovery_codes")
    .values(hashes.map((hash) => ({ hash, user_id: userId })))
    .execute();
};

/** Uses up a recovery code; false if the user has none with this hash. */
export const takeRecoveryCode = (db: Db, userId: string, hash: string): Promise<boolean> =>
  hasRow(
    db
      .deleteFrom("recovery_codes")
      .where("hash", "=", hash)
      .where("user_id", "=", userId)
      .returning("hash"),
  );

/** Up to `limit` users, oldest first, from after a position. */
export const listUsers = (db: Db, after: Position | null, limit: number): Promise<UserRow[]> =>
  pageAfter(db.selectFrom("users").selectAll(), ["created_at", "asc"], "id", after, limit);

/** Changes a user; returns the new row, or undefined if there is none. */
export const changeUser = (
  db: Db,
  id: string,
  change: Partial<Omit<UserRow, "id">>,
): Promise<UserRow | undefined> =>
  db.updateTable("users").set(change).where("id", "=", id).returningAll().executeTakeFirst();

/** Removes a user with their agents, recovery codes and kept answers; false if there is none. */
export const removeUser = (db: Db, id: string): Promise<boolean> =>
  hasRow(db.deleteFrom("users").where("id", "=", id).returning("id"));

/** The number of enabled admins. Blocks other callers until the transaction ends. */
export const countAdmins = async (tx: Db): Promise<number> => {
  // A row that every such transaction writes, so that two admins cannot remove each other at once.
  await tx
    .updateTable("settings")
    .set((of) => ({ value: of.ref("value") }))
    .where("name", "=", "master_key_check")
    .execute();
  const rows = await tx
    .selectFrom("users")
    .select("id")
    .where("role", "=", "admin")
    .where("disabled_at", "is", null)
    .execute();
  return rows.length;
};

export const agentIdsOf = async (db: Db, userId: string): Promise<string[]> => {
  const rows = await db
    .selectFrom("agents")
    .select("agent_id")
    .where("user_id", "=", userId)
    .execute();
  return rows.map(({ agent_id }) => agent_id);
};

const count = async (db: Db, table: "agents" | "users"): Promise<number> => {
  const row = await db
    .selectFrom(table)
    .select((of) => of.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return Number(row.count);
};

export const countAgents = (db: Db): Promise<number> => count(db, "agents");
export const countUsers = (db: Db): Promise<number> => count(db, "users");
