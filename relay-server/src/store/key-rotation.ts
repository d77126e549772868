/** Everything in the store that depends on the master key, rewritten in one transaction. */
import type { Db } from "./open.ts";
import type { TokenRow } from "./tables.ts";

/** Every account's and agent's valid token, of which a new key makes another. */
export const currentTokens = (tx: Db): Promise<TokenRow[]> =>
  tx.selectFrom("tokens").selectAll().where("retired_at", "is", null).execute();

/** Lets tokens that were just retired stay good; `hashes` may be many. */
export const grantGrace = async (tx: Db, hash: string, untilMs: number): Promise<void> => {
  await tx.updateTable("tokens").set({ good_until: untilMs }).where("hash", "=", hash).execute();
};

export interface WrappedSecrets {
  readonly id: string;
  readonly totp_secret: string | null;
  readonly totp_pending: string | null;
}

export const wrappedSecrets = (tx: Db): Promise<WrappedSecrets[]> =>
  tx.selectFrom("users").select(["id", "totp_secret", "totp_pending"]).execute();

export const rewrap = async (tx: Db, user: WrappedSecrets): Promise<void> => {
  const { id, totp_secret, totp_pending } = user;
  await tx.updateTable("users").set({ totp_secret, totp_pending }).where("id", "=", id).execute();
};

/** Forgets what only the old key could read or check; how many recovery codes that were. */
export const dropUnreadable = async (tx: Db): Promise<number> => {
  await tx.deleteFrom("idempotency").execute();
  const codes = await tx.deleteFrom("recovery_codes").returning("hash").execute();
  return codes.length;
};

/** Replaces the check; false if it is no longer the old one: another rotation was faster. */
export const replaceKeyCheck = async (tx: Db, old: string, fresh: string): Promise<boolean> => {
  const replaced = await tx
    .updateTable("settings")
    .set({ value: fresh })
    .where("name", "=", "master_key_check")
    .where("value", "=", old)
    .returning("name")
    .executeTakeFirst();
  return replaced !== undefined;
};
