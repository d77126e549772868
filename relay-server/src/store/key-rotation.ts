/** Everything in the store that depends on the master key, rewritten in one transaction. */
import { hold, share } from "./advisory-lock.ts";
import { hasRow } from "./has-row.ts";
import type { Db } from "./open.ts";
import { readSetting } from "./settings.ts";
import type { TokenRow } from "./tables.ts";
import { StoreUnavailable } from "./unavailable.ts";

const MASTER_KEY = "master key";
/** A relay cannot continue then: it would derive different tokens than the next one. */
export const KEY_ROTATED = "the master key was rotated while this relay ran: start it again";

const IN_ROTATION = "the master key is being rotated: try again in a moment";

/**
 * Call it in each transaction that stores what is sealed with, or derived from, the master key:
 * rejects if the key of this check is the store's no more, or is being replaced. A rotation waits
 * for the transaction.
 */
export const holdKey = async (tx: Db, check: string): Promise<void> => {
  if (!(await share(tx, MASTER_KEY))) throw new StoreUnavailable(null, IN_ROTATION);
  const current = await readSetting(tx, "master_key_check");
  if (current !== null && current !== check) throw new StoreUnavailable(null, KEY_ROTATED);
};

/** Every account's and agent's valid token; a new key derives other ones. */
export const currentTokens = (tx: Db): Promise<TokenRow[]> =>
  tx.selectFrom("tokens").selectAll().where("retired_at", "is", null).execute();

/** Keeps just retired tokens valid for a while; `hashes` may be many. */
export const grantGrace = async (tx: Db, hash: string, untilMs: number): Promise<void> => {
  await tx.updateTable("tokens").set({ good_until: untilMs }).where("hash", "=", hash).execute();
};

interface WrappedSecrets {
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

/** Deletes what only the old key could read or check; returns the number of recovery codes. */
export const dropUnreadable = async (tx: Db): Promise<number> => {
  await tx.deleteFrom("idempotency").execute();
  await tx.deleteFrom("known_addresses").execute();
  const codes = await tx.deleteFrom("recovery_codes").returning("hash").execute();
  return codes.length;
};

/**
 * Replaces the check value; false if it is no longer the old one, because another rotation was
 * faster.
 */
export const replaceKeyCheck = async (tx: Db, old: string, fresh: string): Promise<boolean> => {
  await hold(tx, MASTER_KEY);
  return hasRow(
    tx
      .updateTable("settings")
      .set({ value: fresh })
      .where("name", "=", "master_key_check")
      .where("value", "=", old)
      .returning("name"),
  );
};
