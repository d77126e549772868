/**
 * Checks what a user presents: a password, and a one-time code if TOTP is enabled.
 * Every failure is the same `false`, so a correct password cannot be told from a wrong one.
 */
import type { UserRow } from "../store/tables.ts";
import { failTotp, findUser, forgiveTotp, takeRecoveryCode, useTotpStep } from "../store/users.ts";
import type { ControlContext } from "./context.ts";
import { KNOWN } from "./hash-queue.ts";
import { DUMMY_HASH, verifyPassword } from "./passwords.ts";
import { readCode, totpStep, totpStepAt } from "./totp.ts";

/**
 * How long the account is locked after the first, second, ... wrong code in a row. The first two
 * cost nothing, because people mistype; then it is at least one step, so that a retry uses another
 * code.
 */
const LOCKOUTS_MS = [0, 0, 30_000, 60_000, 120_000, 240_000, 480_000, 900_000];
const LONGEST_LOCKOUT_MS = Math.max(...LOCKOUTS_MS);
/** How far the clocks of nodes that share a store may differ: one step of a code. */
const NODES_APART_MS = 30_000;

/**
 * Whether password and code are correct; `renew` if the hash is of a password that was not
 * normalised. Takes as long for an unknown user. `rank`: of the caller in the queue
 * (hash-queue.ts). Rejects with Overloaded.
 */
export const provesFactors = async (
  context: ControlContext,
  user: UserRow | undefined,
  password: string,
  code: string | undefined,
  rank = KNOWN,
): Promise<boolean | "renew"> => {
  const verdict = await context.hashing.run(
    rank,
    () => verifyPassword(password, user?.password_hash ?? DUMMY_HASH),
    user?.id,
  );
  if (user === undefined || verdict === "wrong") return false;
  const proven = verdict === "as typed" ? "renew" : true;
  if (user.totp_confirmed === 0) return proven;
  const isRight = await context.mutex.pass(`user/${user.id}`, () =>
    provesCode(context, user.id, code),
  );
  return isRight && proven;
};

/**
 * Wrong codes after a correct password slow the account down: while it is locked, codes are not
 * checked at all, so the owner's next one stays valid.
 */
const provesCode = async (
  context: ControlContext,
  userId: string,
  code: string | undefined,
): Promise<boolean> => {
  const nowMs = context.nowMs();
  const user = await findUser(context.store.db, userId);
  if (user === undefined || user.totp_secret === null || code === undefined) return false;
  const lockedForMs = user.totp_rests_until - nowMs;
  // A lockout longer than the longest possible one was written by a clock that was wrong then, or
  // the clock is wrong now, unless another node's is slightly ahead.
  if (lockedForMs > 0 && lockedForMs <= LONGEST_LOCKOUT_MS + NODES_APART_MS) return false;
  if (await usesCode(context, user, user.totp_secret, code, nowMs)) return true;
  await context.store.write((tx) => failTotp(tx, userId, { ms: LOCKOUTS_MS, nowMs }));
  return false;
};

const usesCode = async (
  context: ControlContext,
  user: UserRow,
  wrapped: string,
  given: string,
  nowMs: number,
): Promise<boolean> => {
  const code = readCode(given);
  const secret = context.store.unsealed(() => context.secrets.unwrap(user.id, wrapped));
  const step = totpStep(secret, code, nowMs);
  const stepNow = totpStepAt(nowMs + NODES_APART_MS);
  if (step !== null) return context.store.write((tx) => useTotpStep(tx, user.id, step, stepNow));
  const hash = context.secrets.recoveryHash(user.id, code);
  return context.store.write(async (tx) => {
    const isTaken = await takeRecoveryCode(tx, user.id, hash);
    if (isTaken) await forgiveTotp(tx, user.id);
    return isTaken;
  });
};
