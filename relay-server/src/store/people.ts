/** Users as an administrator sees them: all of them, their roles, and whether they may come in. */
import type { Db } from "./open.ts";
import type { Position } from "./position.ts";
import type { UserRow } from "./tables.ts";

/** Up to `limit` users, oldest first, from after a position. */
export const listUsers = (db: Db, after: Position | null, limit: number): Promise<UserRow[]> => {
  let query = db.selectFrom("users").selectAll();
  if (after !== null) {
    query = query.where((is) =>
      is.or([
        is("created_at", ">", after.at),
        is.and([is("created_at", "=", after.at), is("id", ">", after.id)]),
      ]),
    );
  }
  return query.orderBy("created_at").orderBy("id").limit(limit).execute();
};

/** Changes a user; the row as it then is, or undefined where there is none. */
export const changeUser = (
  db: Db,
  id: string,
  change: Partial<Pick<UserRow, "role" | "disabled_at">>,
): Promise<UserRow | undefined> =>
  db.updateTable("users").set(change).where("id", "=", id).returningAll().executeTakeFirst();

/** Removes a user and, with it, agents, recovery codes and kept answers; false where there is none. */
export const removeUser = async (db: Db, id: string): Promise<boolean> => {
  const removed = await db
    .deleteFrom("users")
    .where("id", "=", id)
    .returning("id")
    .executeTakeFirst();
  return removed !== undefined;
};

/** How many admins may come in. Holds off everybody else who asks until the transaction ends. */
export const countAdmins = async (tx: Db): Promise<number> => {
  // One row that every such transaction writes: two admins must not remove each other at once.
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

export const disabledUsers = async (db: Db): Promise<string[]> => {
  const rows = await db
    .selectFrom("users")
    .select("id")
    .where("disabled_at", "is not", null)
    .execute();
  return rows.map(({ id }) => id);
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
