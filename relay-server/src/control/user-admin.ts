/** An administrator's operations on users. The last enabled admin cannot be removed. */
import { randomUUID } from "node:crypto";
import { removeAllKeys } from "../store/access-keys.ts";
import { type Act, noteAct } from "../store/audit.ts";
import type { Db } from "../store/open.ts";
import { endSessions } from "../store/sessions.ts";
import type { UserRow } from "../store/tables.ts";
import { retireAllTokens } from "../store/tokens.ts";
import {
  addUser,
  agentIdsOf,
  changeUser,
  countAdmins,
  findUser,
  removeTotp,
  removeUser,
} from "../store/users.ts";
import { changeStore, type Post } from "./change-store.ts";
import type { ControlContext } from "./context.ts";
import { KNOWN } from "./hash-queue.ts";
import { issuePersistent } from "./issue.ts";
import { hashPassword } from "./passwords.ts";

export interface NewUser {
  readonly username: string;
  readonly password: string;
  readonly role: "admin" | "user";
}

/** The parts of a ControlContext that need no running relay. */
type Offline = Pick<ControlContext, "store" | "secrets" | "nowMs"> &
  Partial<Pick<ControlContext, "hashing">>;

const hashed = ({ hashing }: Offline, password: string): Promise<string> =>
  hashing === undefined ? hashPassword(password) : hashing.run(KNOWN, () => hashPassword(password));

/** An admin who asks over the network. */
export interface Admin {
  readonly id: string;
  /** Throws if they are shut out by now; inside the transaction, as a password's hash may wait. */
  readonly confirm: (tx: Db) => Promise<void>;
}

/**
 * Creates a user, without a second factor yet; null if the name is taken. `admin`: null for the
 * owner of the data folder.
 */
export const createUser = async (
  context: Offline,
  admin: Admin | null,
  user: NewUser,
): Promise<UserRow | null> => {
  const actorId = admin?.id ?? null;
  const { username, password, role } = user;
  const id = randomUUID();
  const passwordHash = await hashed(context, password);
  const nowMs = context.nowMs();
  return context.store.write(async (tx) => {
    await admin?.confirm(tx);
    const row = { id, username, role, password_hash: passwordHash, created_at: nowMs };
    if (!(await addUser(tx, { ...row, totp_secret: null, totp_confirmed: 0 }))) return null;
    await issuePersistent(tx, context.secrets, { userId: id, agentId: null }, nowMs);
    const detail = { username, role };
    await noteAct(tx, nowMs, { actorId, action: "user.create", subject: id, detail });
    return (await findUser(tx, id)) ?? null;
  });
};

export interface UserChange {
  readonly role?: "admin" | "user";
  readonly disabled?: boolean;
  readonly password?: string;
  /** Removes a second factor that its owner lost. */
  readonly totpEnabled?: false;
}

export type UserChangeRefusal = "unknown" | "last_admin";

/**
 * Changes a user, and ends what the change takes away: logins, session tokens, links. `admin`: null
 * for the owner of the data folder.
 */
export const administer = async (
  context: Offline & Partial<Pick<ControlContext, "links">>,
  admin: Admin | null,
  id: string,
  change: UserChange,
): Promise<UserRow | UserChangeRefusal> => {
  const actorId = admin?.id ?? null;
  const passwordHash =
    change.password === undefined ? null : await hashed(context, change.password);
  return unlessLastAdmin(context, id, async (tx, nowMs, post) => {
    await admin?.confirm(tx);
    const user = await findUser(tx, id);
    if (user === undefined) return "unknown";
    const acts: Omit<Act, "actorId" | "subject">[] = [];
    if (change.role !== undefined && change.role !== user.role) {
      await changeUser(tx, id, { role: change.role });
      acts.push({ action: "user.role", detail: { role: change.role } });
    }
    if (change.disabled !== undefined && change.disabled !== (user.disabled_at !== null)) {
      await changeUser(tx, id, { disabled_at: change.disabled ? nowMs : null });
      // Enabling the user makes persistent tokens valid again, but not short-lived ones.
      if (change.disabled) {
        await endSessions(tx, id, ["login", "client", "key"], null, nowMs);
        await removeAllKeys(tx, id, nowMs);
      }
      acts.push({ action: change.disabled ? "user.disable" : "user.enable" });
    }
    if (passwordHash !== null) {
      await changeUser(tx, id, { password_hash: passwordHash });
      await issuePersistent(tx, context.secrets, { userId: id, agentId: null }, nowMs);
      await endSessions(tx, id, ["login", "client"], null, nowMs);
      acts.push({ action: "user.password" });
    }
    if (change.totpEnabled === false) {
      await removeTotp(tx, id);
      acts.push({ action: "user.totp_disable" });
    }
    for (const act of acts) await noteAct(tx, nowMs, { ...act, actorId, subject: id });
    if (change.disabled === true) await post("end_user", id);
    else if (passwordHash !== null) await post("end_clients", id);
    return (await findUser(tx, id)) as UserRow;
  });
};

/** Removes a user with all agents, tokens and links. */
export const deleteUser = (
  context: ControlContext,
  actorId: string,
  id: string,
): Promise<"deleted" | UserChangeRefusal> =>
  unlessLastAdmin(context, id, async (tx, nowMs, post) => {
    const user = await findUser(tx, id);
    if (user === undefined) return "unknown";
    const agents = await agentIdsOf(tx, id);
    const detail = { username: user.username, agents: agents.length };
    await noteAct(tx, nowMs, { actorId, action: "user.delete", subject: id, detail });
    await retireAllTokens(tx, id, nowMs);
    await endSessions(tx, id, ["login", "client", "key"], null, nowMs);
    await removeAllKeys(tx, id, nowMs);
    await removeUser(tx, id);
    await post("end_user", id);
    return "deleted";
  });

class LastAdmin extends Error {}

/** Runs `work` in a transaction that is undone if it would leave no admin. */
const unlessLastAdmin = async <T>(
  context: Offline,
  userId: string,
  work: (tx: Db, nowMs: number, post: Post) => Promise<T>,
): Promise<T | "last_admin"> => {
  try {
    return await changeStore(context, userId, async (tx, nowMs, post) => {
      await countAdmins(tx);
      const result = await work(tx, nowMs, post);
      if ((await countAdmins(tx)) === 0) throw new LastAdmin();
      return result;
    });
  } catch (error) {
    if (error instanceof LastAdmin) return "last_admin";
    throw error;
  }
};
