/** What users do with their account: log in and out, renew the token, change password and TOTP. */
import {
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
  USERNAME_PATTERN,
} from "@blindrelay/protocol/schema/rest";
import { noteAct } from "../store/audit.ts";
import { holdKey } from "../store/key-rotation.ts";
import type { Db } from "../store/open.ts";
import { endLogin, endSessions } from "../store/sessions.ts";
import type { UserRow } from "../store/tables.ts";
import {
  changeUser,
  confirmTotp,
  findUserByName,
  holdFactors,
  removeTotp,
  replaceRecoveryCodes,
} from "../store/users.ts";
import { changeStore } from "./change-store.ts";
import type { ControlContext } from "./context.ts";
import { type Credential, isStillLive } from "./credentials.ts";
import { KNOWN } from "./hash-queue.ts";
import { holdToken, type Issued, issueLogin, issuePersistent, repeatPersistent } from "./issue.ts";
import { rememberAddress } from "./known-addresses.ts";
import { provesFactors } from "./login-check.ts";
import { hashPassword, normalPassword } from "./passwords.ts";
import { drawRecoveryCodes, drawTotpSecret, otpauthUri, readCode, totpStep } from "./totp.ts";

const USERNAME = new RegExp(USERNAME_PATTERN);

/** Why a user name or password is not acceptable, as a sentence; null if both are. */
export const userProblem = (username: string, password: string): string | null => {
  if (!USERNAME.test(username)) {
    return "a user name has 1 to 64 letters, digits or any of . _ @ -";
  }
  const { length } = normalPassword(password);
  if (length < MIN_PASSWORD_LENGTH || length > MAX_PASSWORD_LENGTH) {
    return `a password has ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`;
  }
  return null;
};

export interface Login {
  readonly user: UserRow;
  readonly login: Issued;
  /** Null if the login only permits enrolling TOTP. */
  readonly accountToken: string | null;
}

/**
 * Logs a person in, from `address`; null for a wrong name, password or code alike. `rank`: of this
 * login in the queue (hash-queue.ts). Rejects with Overloaded.
 */
export const logIn = async (
  context: ControlContext,
  username: string,
  password: string,
  code: string | undefined,
  address: string,
  rank = KNOWN,
): Promise<Login | null> => {
  // A name of another form cannot exist, and may contain characters that a database rejects.
  const user = USERNAME.test(username)
    ? await findUserByName(context.store.db, username)
    : undefined;
  const proven = await provesFactors(context, user, password, code, rank);
  if (proven === false || user === undefined) return null;
  const renewed =
    proven === "renew"
      ? await context.hashing.run(rank, () => hashPassword(password), user.id)
      : null;
  const limited = context.totpRequired && user.totp_confirmed === 0;
  // A change of password ends the logins that it finds, so none may be added behind its back.
  const login = await context.store.write(async (tx) => {
    if (!(await holdFactors(tx, user))) return null;
    if (renewed !== null) await changeUser(tx, user.id, { password_hash: renewed });
    const issued = await issueLogin(tx, user.id, limited, context.nowMs());
    await rememberAddress(context, tx, user, address);
    return issued;
  });
  if (login === null) return null;
  const owner = { userId: user.id, agentId: null };
  const accountToken = limited
    ? null
    : await repeatPersistent(context.store.db, context.secrets, owner);
  return { user, login, accountToken };
};

/** Ends an access token, and the session tokens and links made with it. */
export const logOut = (context: ControlContext, userId: string, loginHash: string): Promise<void> =>
  changeStore(context, userId, async (tx, nowMs, post) =>
    post("end_session", ...(await endLogin(tx, loginHash, nowMs))),
  );

/**
 * Makes a new account token; the old one, all session tokens of the account's clients and their
 * links end. Null if `asking` is not valid any more: a new password, or another renewal, that was
 * quicker has shut its holder out.
 */
export const rotateAccountToken = (
  context: ControlContext,
  asking: Pick<Credential, "holder" | "hash" | "userId">,
): Promise<{ token: string; rotatedAtMs: number } | null> => {
  const { userId } = asking;
  const owner = { userId, agentId: null };
  return changeStore(context, userId, async (tx, nowMs, post) => {
    await holdToken(tx, owner);
    if (!(await isStillLive(tx, asking, nowMs))) return null;
    const token = await issuePersistent(tx, context.secrets, owner, nowMs);
    await endSessions(tx, userId, ["client"], null, nowMs);
    await noteAct(tx, nowMs, { actorId: userId, action: "user.rotate_token", subject: userId });
    await post("end_clients", userId);
    return { token, rotatedAtMs: nowMs };
  });
};

const endTotp = async (tx: Db, userId: string, nowMs: number): Promise<void> => {
  await removeTotp(tx, userId);
  await noteAct(tx, nowMs, { actorId: userId, action: "user.totp_disable", subject: userId });
};

/**
 * Sets a new password, and ends TOTP with it, or neither. Anyone who knew the old one may have
 * every token that a login returns, so the account token is renewed and all logins and session
 * tokens end, except the requesting login. False if the factors of `user`, as they were checked,
 * are others by now.
 */
export const changePassword = async (
  context: ControlContext,
  user: UserRow,
  password: string,
  askingHash: string,
  endsTotp = false,
): Promise<boolean> => {
  const userId = user.id;
  const passwordHash = await context.hashing.run(KNOWN, () => hashPassword(password), userId);
  return changeStore(context, userId, async (tx, nowMs, post) => {
    if (!(await holdFactors(tx, user))) return false;
    if (endsTotp) await endTotp(tx, userId, nowMs);
    await changeUser(tx, userId, { password_hash: passwordHash });
    await issuePersistent(tx, context.secrets, { userId, agentId: null }, nowMs);
    await endSessions(tx, userId, ["login", "client"], askingHash, nowMs);
    await noteAct(tx, nowMs, { actorId: userId, action: "user.password", subject: userId });
    await post("end_clients", userId);
    return true;
  });
};

/**
 * Makes a TOTP secret that becomes valid once a code confirms it; null if the factors of `user`, as
 * they were checked, are others by now.
 */
export const enrollTotp = async (
  context: ControlContext,
  user: UserRow,
): Promise<{ secret: string; uri: string } | null> => {
  const secret = drawTotpSecret();
  const wrapped = context.secrets.wrap(user.id, secret);
  const isPending = await context.store.write(async (tx) => {
    await holdKey(tx, context.secrets.check());
    if (!(await holdFactors(tx, user))) return false;
    await changeUser(tx, user.id, { totp_pending: wrapped });
    return true;
  });
  return isPending ? { secret, uri: otpauthUri(user.username, secret) } : null;
};

/** Confirms the new secret with a code; returns ten recovery codes, or null for a wrong code. */
export const confirmEnrolment = async (
  context: ControlContext,
  user: UserRow,
  pending: string,
  code: string,
): Promise<string[] | null> => {
  const { store, secrets } = context;
  const secret = store.unsealed(() => secrets.unwrap(user.id, pending));
  const step = totpStep(secret, readCode(code), context.nowMs());
  if (step === null) return null;
  const codes = drawRecoveryCodes();
  return store.write(async (tx) => {
    await holdKey(tx, secrets.check());
    if (!(await holdFactors(tx, user))) return null;
    if (!(await confirmTotp(tx, user.id, pending, step))) return null;
    const hashes = codes.map((text) => secrets.recoveryHash(user.id, text));
    await replaceRecoveryCodes(tx, user.id, hashes);
    const act = { actorId: user.id, action: "user.totp_enable", subject: user.id } as const;
    await noteAct(tx, context.nowMs(), act);
    return codes;
  });
};

/** Ends TOTP for an account; false if its factors, as they were checked, are others by now. */
export const disableTotp = (context: ControlContext, user: UserRow): Promise<boolean> =>
  context.store.write(async (tx) => {
    if (!(await holdFactors(tx, user))) return false;
    await endTotp(tx, user.id, context.nowMs());
    return true;
  });
