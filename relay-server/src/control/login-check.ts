/**
 * What a person proves: a password, and a one-time code where TOTP is enabled (section 4). Every
 * failure is the same `false`, so that nothing tells a right password from a wrong one.
 */

import type { UserRow } from "../store/tables.ts";
import { findUser, lockTotp, takeRecoveryCode, useTotpStep } from "../store/users.ts";
import type { ControlContext } from "./context.ts";
import { DUMMY_HASH, verifyPassword } from "./passwords.ts";
import { totpStep } from "./totp.ts";

/** Wrong codes in a row that cost nothing: people mistype. */
const FREE_FAILURES = 2;
const FIRST_REST_MS = 30_000; // one step, so that a retry is with another code
const LONGEST_REST_MS = 15 * 60_000;

/** Whether password and code are the user's. Takes as long for an unknown user. */
export const provesFactors = async (
  context: ControlContext,
  user: UserRow | undefined,
  password: string,
  code: string | undefined,
): Promise<boolean> => {
  const right = await verifyPassword(password, user?.password_hash ?? DUMMY_HASH);
  if (user === undefined || !right) return false;
  if (user.totp_confirmed === 0) return true;
  return context.mutex.pass(`user/${user.id}`, () => provesCode(context, user.id, code));
};

/**
 * Wrong codes after a right password slow the account down: while it rests a code is not even
 * looked at, so its owner's next one stays good.
 */
const provesCode = async (
  context: ControlContext,
  userId: string,
  code: string | undefined,
): Promise<boolean> => {
  const nowMs = context.nowMs();
  const user = await findUser(context.store.db, userId);
  if (user === undefined || user.totp_secret === null || code === undefined) return false;
  if (user.totp_rests_until > nowMs) return false;
  if (await usesCode(context, user, user.totp_secret, code, nowMs)) return true;
  const failures = user.totp_failures + 1;
  const restMs =
    failures <= FREE_FAILURES
      ? 0
      : Math.min(FIRST_REST_MS * 2 ** (failures - FREE_FAILURES - 1), LONGEST_REST_MS);
  await lockTotp(context.store.db, userId, failures, nowMs + restMs);
  return false;
};

const usesCode = async (
  context: ControlContext,
  user: UserRow,
  wrapped: string,
  code: string,
  nowMs: number,
): Promise<boolean> => {
  const step = totpStep(context.secrets.unwrap(user.id, wrapped), code, nowMs);
  if (step !== null) return useTotpStep(context.store.db, user.id, step);
  const hash = context.secrets.recoveryHash(user.id, code.toLowerCase());
  if (!(await takeRecoveryCode(context.store.db, user.id, hash))) return false;
  await lockTotp(context.store.db, user.id, 0, 0);
  return true;
};
