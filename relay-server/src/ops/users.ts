/** `user add`, `user list`, `user disable` and `user enable`: people, for whoever holds the data folder. */
import { userProblem } from "../control/account.ts";
import { type DataOptions, openData } from "../control/data-dir.ts";
import { administer, createUser, type NewUser } from "../control/user-admin.ts";
import { Failure } from "../failure.ts";

/** As `user list` shows it. */
export interface ListedUser {
  readonly id: string;
  readonly username: string;
  readonly role: "admin" | "user";
  readonly totp_enabled: boolean;
  readonly disabled: boolean;
  readonly created_at: string;
}

/** Makes an account and answers its id. Rejects with a Failure where the name is taken or will not do. */
export const makeUser = async (options: DataOptions, user: NewUser): Promise<{ id: string }> => {
  const { username, password } = user;
  const problem = userProblem(username, password);
  if (problem !== null) throw new Failure("usage", problem);
  const { store, secrets } = await openData(options);
  try {
    const made = await createUser({ store, secrets, nowMs: Date.now }, null, user);
    if (made === null) throw new Failure("refused", `there is a user ${username} already`);
    return { id: made.id };
  } finally {
    await store.close();
  }
};

/** Everybody, by name. */
export const listUsers = async (options: DataOptions): Promise<ListedUser[]> => {
  const { store } = await openData(options);
  try {
    const rows = await store.db
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
  } finally {
    await store.close();
  }
};

/**
 * Disables a user, or enables one again. A relay that runs on the same store ends the user's links
 * within a second. Rejects with a Failure for a name that nobody has, and for the last admin.
 */
export const setDisabled = async (
  options: DataOptions,
  username: string,
  disabled: boolean,
): Promise<void> => {
  const { store, secrets } = await openData(options);
  try {
    const user = await store.db
      .selectFrom("users")
      .select("id")
      .where("username", "=", username)
      .executeTakeFirst();
    if (user === undefined) throw new Failure("refused", `there is no user ${username}`);
    const context = { store, secrets, nowMs: Date.now };
    const result = await administer(context, null, user.id, { disabled });
    if (result === "last_admin") {
      throw new Failure("refused", `${username} is the last admin: make another one first`);
    }
  } finally {
    await store.close();
  }
};
