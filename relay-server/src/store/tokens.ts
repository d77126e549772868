/** Persistent tokens: account tokens and agent relay tokens, by hash (section 1). */
import { sql } from "kysely";
import { type MaybePromise, whenKnown } from "../base/maybe-promise.ts";
import { ENDED_TOKENS_PER_OWNER } from "./bounds.ts";
import { crowdedOwners, forgetRows, pause } from "./forget.ts";
import { nextLoginNumber } from "./login-numbers.ts";
import type { Db } from "./open.ts";
import { prepared } from "./prepared.ts";
import type { NewToken, TokenRow } from "./tables.ts";

const tokenByHash = prepared((db, { hash }: { hash: string }) =>
  db
    .selectFrom("tokens as token")
    .leftJoin("users as user", "user.id", "token.user_id")
    .selectAll("token")
    .select([
      "user.id as owner",
      "user.disabled_at",
      nextLoginNumber(db, "token.agent_id").as("login_number"),
    ])
    .where("token.hash", "=", hash),
);

/**
 * A token, and the number of a login with it; while its user is disabled, it is retired and not
 * valid, and once its user is removed: it may have been made at that moment.
 */
export const findToken = (
  db: Db,
  hash: string,
): MaybePromise<(TokenRow & { login_number: number }) | undefined> =>
  whenKnown(tokenByHash(db, { hash }), ([row]) => {
    if (row === undefined) return undefined;
    const { owner, disabled_at, ...token } = row;
    const ended_at = owner === null ? token.issued_at : disabled_at;
    return ended_at === null ? token : { ...token, retired_at: ended_at, good_until: null };
  });

/** The owner of a persistent token: `agentId` null means the account itself. */
export interface Owner {
  readonly userId: string;
  readonly agentId: string | null;
}

/** The currently valid token. */
export const currentToken = (db: Db, owner: Owner): Promise<TokenRow | undefined> =>
  db
    .selectFrom("tokens")
    .selectAll()
    .where("user_id", "=", owner.userId)
    .where("agent_id", owner.agentId === null ? "is" : "=", owner.agentId)
    .where("retired_at", "is", null)
    .executeTakeFirst();

export const addToken = async (db: Db, token: NewToken): Promise<void> => {
  await db.insertInto("tokens").values(token).execute();
};

const retire = (db: Db, userId: string, nowMs: number) =>
  db
    .updateTable("tokens")
    .set((of) => ({ retired_at: of.fn.coalesce("retired_at", of.val(nowMs)), good_until: null }))
    .where("user_id", "=", userId)
    .where((is) => is.or([is("retired_at", "is", null), is("good_until", "is not", null)]));

/** Ends an owner's tokens; their hashes are kept a while. */
export const retireTokens = async (db: Db, owner: Owner, nowMs: number): Promise<void> => {
  const { userId, agentId } = owner;
  await retire(db, userId, nowMs)
    .where("agent_id", agentId === null ? "is" : "=", agentId)
    .execute();
};

/** Ends every persistent token of an account and of its agents. */
export const retireAllTokens = async (db: Db, userId: string, nowMs: number): Promise<void> => {
  await retire(db, userId, nowMs).execute();
};

/** Tokens that have ended; what was made with them has ended too. */
const endedTokens = (db: Db, userId: string, nowMs: number) =>
  db
    .selectFrom("tokens")
    .select("hash")
    .where("user_id", "=", userId)
    .where("retired_at", "is not", null)
    .where((is) => is.or([is("good_until", "is", null), is("good_until", "<", nowMs)]))
    .orderBy((of) => sql`${of.ref("retired_at")} - ${of.ref("issued_at")}`, "desc")
    .orderBy("issued_at", "desc");

/**
 * Limits how long a transaction takes; an excess from before there was a limit is removed later.
 */
const MAX_TOGETHER = 100;

/** Deletes an owner's ended tokens that are too many. */
export const trimTokens = async (tx: Db, owner: Owner, nowMs: number): Promise<void> => {
  const { userId, agentId } = owner;
  const excess = await endedTokens(tx, userId, nowMs)
    .where("agent_id", agentId === null ? "is" : "=", agentId)
    .offset(ENDED_TOKENS_PER_OWNER)
    .limit(MAX_TOGETHER)
    .execute();
  await removeTokens(tx, excess);
};

/** Its sessions first: without its row they would no longer count as ended. */
const removeTokens = async (
  tx: Db,
  tokens: readonly { readonly hash: string }[],
): Promise<void> => {
  const hashes = tokens.map(({ hash }) => hash);
  if (hashes.length === 0) return;
  await tx.deleteFrom("sessions").where("parent", "in", hashes).execute();
  await tx.deleteFrom("tokens").where("hash", "in", hashes).execute();
};

/** Deletes hashes that were retired before `beforeMs`. */
export const forgetTokens = async (db: Db, beforeMs: number): Promise<void> => {
  const isOver = sql`retired_at < ${beforeMs} and (good_until is null or good_until < ${beforeMs})`;
  await forgetRows(db, "tokens", "hash", isOver);
};

/**
 * Deletes all but `kept` of each user's ended tokens, which may be of agents that were removed.
 */
export const trimTokensOfUsers = async (db: Db, nowMs: number, kept: number): Promise<void> => {
  for (const userId of await crowdedOwners(db, "tokens", kept)) {
    for (;;) {
      const excess = await endedTokens(db, userId, nowMs)
        .offset(kept)
        .limit(MAX_TOGETHER)
        .execute();
      await db.transaction().execute((tx) => removeTokens(tx, excess));
      if (excess.length < MAX_TOGETHER) break;
      await pause();
    }
  }
};
