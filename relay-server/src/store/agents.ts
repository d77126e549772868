/** Agents and their owners. */
import { type MaybePromise, whenKnown } from "../base/maybe-promise.ts";
import { beginsWith, type Chosen } from "./agent-selector.ts";
import { hasRow } from "./has-row.ts";
import { type Position, pageAfter } from "./keyset.ts";
import type { Db } from "./open.ts";
import { prepared } from "./prepared.ts";
import type { AgentRow } from "./tables.ts";

/** Adds an agent; false if the identifier is taken by any user. */
export const addAgent = async (
  db: Db,
  agent: Pick<AgentRow, "agent_id" | "user_id" | "name" | "metadata" | "created_at"> &
    Partial<Pick<AgentRow, "labels">>,
): Promise<boolean> => {
  const added = db
    .insertInto("agents")
    .values(agent)
    .onConflict((conflict) => conflict.column("agent_id").doNothing())
    .returning("agent_id");
  if (!(await hasRow(added))) return false;
  if (agent.labels !== undefined)
    await indexLabels(db, agent.user_id, agent.agent_id, agent.labels);
  return true;
};

/** Replaces the rows by which selectors find an agent's labels, JSON text. */
const indexLabels = async (
  db: Db,
  userId: string,
  agentId: string,
  labels: string,
): Promise<void> => {
  await db.deleteFrom("agent_labels").where("agent_id", "=", agentId).execute();
  const rows = Object.entries(JSON.parse(labels) as Record<string, string>).map(([key, value]) => ({
    agent_id: agentId,
    user_id: userId,
    key,
    value,
  }));
  if (rows.length > 0) await db.insertInto("agent_labels").values(rows).execute();
};

/** An agent of this user; undefined also if it belongs to another user. */
export const findAgent = (db: Db, userId: string, agentId: string): Promise<AgentRow | undefined> =>
  db
    .selectFrom("agents")
    .selectAll()
    .where("agent_id", "=", agentId)
    .where("user_id", "=", userId)
    .executeTakeFirst();

/** How many agents a user has, and the total size of their metadata in bytes. */
export const heldBy = (
  db: Db,
  userId: string,
): Promise<{ agents_held: number; metadata_bytes: number }> =>
  db
    .selectFrom("users")
    .select(["agents_held", "metadata_bytes"])
    .where("id", "=", userId)
    .executeTakeFirstOrThrow();

/** The user that an agent belongs to, or null if the agent does not exist. */
export const ownerOf = (db: Db, agentId: string): MaybePromise<string | null> =>
  whenKnown(ownerByAgent(db, { agentId }), ([row]) => row?.user_id ?? null);

const ownerByAgent = prepared((db, { agentId }: { agentId: string }) =>
  db.selectFrom("agents").select("user_id").where("agent_id", "=", agentId),
);

const labelsByAgent = prepared((db, { agentId }: { agentId: string }) =>
  db.selectFrom("agents").select(["user_id", "labels"]).where("agent_id", "=", agentId),
);

/** An agent's owner and labels; null: there is no such agent. */
export const labelsOf = (
  db: Db,
  agentId: string,
): MaybePromise<{ readonly userId: string; readonly labels: Labels } | null> =>
  whenKnown(labelsByAgent(db, { agentId }), ([row]) =>
    row === undefined ? null : { userId: row.user_id, labels: JSON.parse(row.labels) as Labels },
  );

type Labels = Readonly<Record<string, string>>;

/** The identifiers of a user's agents that all conditions choose. */
export const chosenAgents = async (
  db: Db,
  userId: string,
  chosen: readonly Chosen[],
): Promise<string[]> => {
  let query = db
    .selectFrom("agents")
    .select("agents.agent_id")
    .where("agents.user_id", "=", userId);
  for (const choose of chosen) query = query.where(choose);
  return (await query.execute()).map(({ agent_id }) => agent_id);
};

/** All of a user's agents with their labels. */
export const labelledAgents = async (
  db: Db,
  userId: string,
): Promise<{ readonly agent_id: string; readonly labels: Labels }[]> => {
  const query = db.selectFrom("agents").select(["agent_id", "labels"]);
  const rows = await query.where("user_id", "=", userId).execute();
  return rows.map(({ agent_id, labels }) => ({ agent_id, labels: JSON.parse(labels) as Labels }));
};

/** Conditions for a list; an absent one matches everything. */
interface AgentFilter {
  /** The beginning of the name, case-sensitive. */
  readonly name?: string | undefined;
  /** The beginning of the runtime. */
  readonly runtime?: string | undefined;
  readonly firmwareVersion?: string | undefined;
  /** Of a selector. */
  readonly chosen?: readonly Chosen[];
}

/** An agent's place in its owner's list. */
export type AgentPlace = Pick<AgentRow, "agent_id" | "created_at" | "node">;

/** The places of up to `limit` agents of a user, oldest first; reads only the index. */
export const listAgents = (
  db: Db,
  userId: string,
  after: Position | null,
  limit: number,
  filter: AgentFilter = {},
): Promise<AgentPlace[]> => {
  let query = db
    .selectFrom("agents")
    .select(["agent_id", "created_at", "node"])
    .where("user_id", "=", userId);
  for (const [column, prefix] of [
    ["name", filter.name],
    ["runtime", filter.runtime],
  ] as const) {
    // Not LIKE, which ignores case in SQLite and has wildcards.
    if (prefix !== undefined) query = query.where(beginsWith(column, prefix));
  }
  if (filter.firmwareVersion !== undefined) {
    query = query.where("firmware_version", "=", filter.firmwareVersion);
  }
  for (const chosen of filter.chosen ?? []) query = query.where(chosen);
  return pageAfter(query, ["created_at", "asc"], "agent_id", after, limit);
};

/** These agents of a user, by identifier; agents removed in the meantime are missing. */
export const findAgents = async (
  db: Db,
  userId: string,
  agentIds: readonly string[],
): Promise<Map<string, AgentRow>> => {
  if (agentIds.length === 0) return new Map();
  // Asked for the user too, SQLite would go through all agents of the user.
  const rows = await db
    .selectFrom("agents")
    .selectAll()
    .where("agent_id", "in", agentIds)
    .execute();
  return new Map(rows.filter((row) => row.user_id === userId).map((row) => [row.agent_id, row]));
};

/**
 * Changes name, labels or metadata; returns the new row, or undefined if it is not this user's
 * agent.
 */
export const changeAgent = async (
  db: Db,
  userId: string,
  agentId: string,
  change: Partial<Pick<AgentRow, "name" | "labels" | "metadata">>,
): Promise<AgentRow | undefined> => {
  const changed = await db
    .updateTable("agents")
    .set(change)
    .where("agent_id", "=", agentId)
    .where("user_id", "=", userId)
    .returningAll()
    .executeTakeFirst();
  if (changed !== undefined && change.labels !== undefined) {
    await indexLabels(db, userId, agentId, change.labels);
  }
  return changed;
};

/** Removes an agent; false if it is not this user's agent. */
export const removeAgent = (db: Db, userId: string, agentId: string): Promise<boolean> =>
  hasRow(
    db
      .deleteFrom("agents")
      .where("agent_id", "=", agentId)
      .where("user_id", "=", userId)
      .returning("agent_id"),
  );

/** Whether an agent has its link on this node of a cluster. */
export interface Place {
  readonly node: string;
  readonly online: boolean;
}

/** Records that an agent connected or disconnected, and its report at login. */
export const writeSighting = async (
  db: Db,
  agentId: string,
  atMs: number,
  report: { readonly runtime: string | null; readonly firmwareVersion: string | null } | null,
  place: Place | null = null,
): Promise<void> => {
  if (report === null) await noteGone(db, { agentId, atMs });
  else await noteSeen(db, { agentId, atMs, ...report });
  if (place !== null) await (place.online ? noteCame : noteWent)(db, { agentId, node: place.node });
};

/** Whether another node than this one has an agent, by what it has written after `sinceMs`. */
export const isElsewhereSince = async (
  db: Db,
  agentId: string,
  node: string,
  sinceMs: number,
): Promise<boolean> => {
  const row = await db
    .selectFrom("agents")
    .select("node")
    .where("agent_id", "=", agentId)
    .where("node", "!=", node)
    .where("last_seen", ">", sinceMs)
    .executeTakeFirst();
  return row !== undefined;
};

/** The version that an agent reported at its last login; null if none. */
export const lastVersion = (db: Db, agentId: string): MaybePromise<string | null> =>
  whenKnown(versionByAgent(db, { agentId }), ([row]) => row?.firmware_version ?? null);

const versionByAgent = prepared((db, { agentId }: { agentId: string }) =>
  db.selectFrom("agents").select("firmware_version").where("agent_id", "=", agentId),
);

interface Gone {
  readonly agentId: string;
  readonly atMs: number;
}
interface Seen extends Gone {
  readonly runtime: string | null;
  readonly firmwareVersion: string | null;
}

const sighting = (db: Db, { agentId, atMs }: Gone) =>
  db
    .updateTable("agents")
    .set((of) => ({
      // Another node may already have seen it later.
      last_seen: of.case().when("last_seen", ">", atMs).then(of.ref("last_seen")).else(atMs).end(),
    }))
    .where("agent_id", "=", agentId);

const noteGone = prepared((db, gone: Gone) => sighting(db, gone));
const noteSeen = prepared((db, seen: Seen) =>
  sighting(db, seen).set({ runtime: seen.runtime, firmware_version: seen.firmwareVersion }),
);

interface Held {
  readonly agentId: string;
  readonly node: string;
}

const noteCame = prepared((db, { agentId, node }: Held) =>
  db.updateTable("agents").set({ node }).where("agent_id", "=", agentId),
);
/** It may have moved to another node before this is written. */
const noteWent = prepared((db, { agentId, node }: Held) =>
  db
    .updateTable("agents")
    .set({ node: null })
    .where("agent_id", "=", agentId)
    .where("node", "=", node),
);
