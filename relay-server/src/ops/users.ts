/** `user ...` and `unlock`: user management for the owner of the data folder. */

import { isIP } from "node:net";
import { Failure } from "@blindrelay/protocol/command-line";
import type { AdminUser } from "@blindrelay/protocol/schema/rest";
import { userProblem } from "../control/account.ts";
import { type DataOptions, openData } from "../control/data-dir.ts";
import { administer, createUser, type NewUser, type UserChange } from "../control/user-admin.ts";
import { noteAct } from "../store/audit.ts";
import { postNotices } from "../store/notices.ts";
import type { Db } from "../store/open.ts";
import { forgiveTotp } from "../store/users.ts";

/**
 * Creates an account and returns its id. Rejects with a Failure if the name is taken or invalid.
 */
export const makeUser = async (options: DataOptions, user: NewUser): Promise<{ id: string }> => {
  const { username, password } = user;
  const problem = userProblem(username, password);
  if (problem !== null) throw new Failure("usage", problem);
  await using data = await openData(options);
  const made = await createUser({ ...data, nowMs: data.clock.nowMs }, null, user);
  if (made === null) throw new Failure("refused", `there is a user ${username} already`);
  return { id: made.id };
};

/** All users, by name. */
export const listUsers = async (options: DataOptions): Promise<AdminUser[]> => {
  await using data = await openData(options);
  const rows = await data.store.db
    .selectFrom("users")
    .select(["id", "username", "role", "totp_confirmed", "disabled_at", "created_at"])
    .orderBy("username")
    .execute();
  return rows.map(({ totp_confirmed, disabled_at, created_at, ...user }) => ({
    ...user,
    totp_enabled: totp_confirmed === 1,
    disabled: disabled_at !== null,
    created_at: new Date(created_at).toISOString(),
  }));
};

/**
 * Disables or enables a user. A relay that runs on the same store ends the user's links within a
 * second. Rejects with a Failure for an unknown name, and for the last admin.
 */
export const setDisabled = (options: DataOptions, username: string, disabled: boolean) =>
  changeByName(options, username, { disabled });

/**
 * Sets a password. As when the owner changes it, the account token is renewed, and logins, session
 * tokens and clients' links end; a running relay does so within a second.
 */
export const resetPassword = async (
  options: DataOptions,
  username: string,
  password: string,
): Promise<void> => {
  const problem = userProblem(username, password);
  if (problem !== null) throw new Failure("usage", problem);
  await changeByName(options, username, { password });
};

/** Removes a second factor; if one is required, the user enrols again at the next login. */
export const resetTotp = (options: DataOptions, username: string): Promise<void> =>
  changeByName(options, username, { totpEnabled: false });

export interface Unlocked {
  readonly address: string | null;
  readonly username: string | null;
}

/**
 * Lifts lockouts after failed logins within a second, in every relay that runs on the store: of an
 * address, of a user name including its second factor, or of both if the text is both.
 */
export const unlock = async (options: DataOptions, subject: string): Promise<Unlocked> => {
  await using data = await openData(options);
  const address = isIP(subject) === 0 ? null : subject;
  return await data.store.write(async (tx) => {
    const user = await findByName(tx, subject);
    if (address === null && user === undefined) {
      throw new Failure("refused", `${subject} is neither an IP address nor a user name`);
    }
    const nowMs = data.clock.nowMs();
    if (user !== undefined) {
      await forgiveTotp(tx, user.id);
      await noteAct(tx, nowMs, { actorId: null, action: "user.unlock", subject: user.id });
    }
    await postNotices(tx, "unlock", [subject], nowMs, null);
    return { address, username: user === undefined ? null : subject };
  });
};

const findByName = (db: Db, username: string) =>
  db.selectFrom("users").select("id").where("username", "=", username).executeTakeFirst();

const changeByName = async (
  options: DataOptions,
  username: string,
  change: UserChange,
): Promise<void> => {
  await using data = await openData(options);
  const user = await findByName(data.store.db, username);
  if (user === undefined) throw new Failure("refused", `there is no user ${username}`);
  // A relay that runs on the store reads the notice.
  const result = await administer({ ...data, nowMs: data.clock.nowMs }, null, user.id, change);
  if (result === "last_admin") {
    throw new Failure("refused", `${username} is the last admin: make another one first`);
  }
};
