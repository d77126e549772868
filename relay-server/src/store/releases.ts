/** Releases, and which agents were offered and confirmed them. */
import type { Release, ReleaseQuery } from "@blindrelay/protocol/schema/rest";
import { hasRow } from "./has-row.ts";
import { type Position, pageAfter } from "./keyset.ts";
import type { Db } from "./open.ts";
import { prepared } from "./prepared.ts";
import type { ReleaseRow } from "./tables.ts";
import { dropUpload } from "./uploads.ts";

/** Adds a draft; false if this version exists for the runtime and channel. */
export const addRelease = (
  db: Db,
  draft: Pick<
    ReleaseRow,
    "id" | "runtime" | "channel" | "version" | "status" | "notes" | "created_at"
  >,
): Promise<boolean> =>
  hasRow(
    db
      .insertInto("releases")
      .values({ ...draft, percent: 100, paused: 0 })
      .onConflict((conflict) => conflict.columns(["runtime", "channel", "version"]).doNothing())
      .returning("id"),
  );

export const findRelease = (db: Db, id: string): Promise<ReleaseRow | undefined> =>
  db.selectFrom("releases").selectAll().where("id", "=", id).executeTakeFirst();

/** Conditions for a list; an absent one matches everything. */
interface ReleaseFilter extends Pick<ReleaseQuery, "runtime" | "channel" | "status"> {
  readonly drafts: boolean;
}

/** Up to `limit` releases, newest first. */
export const listReleases = (
  db: Db,
  filter: ReleaseFilter,
  after: Position | null,
  limit: number,
): Promise<ReleaseRow[]> => {
  let query = db.selectFrom("releases").selectAll();
  for (const column of ["runtime", "channel", "status"] as const) {
    const value = filter[column];
    if (value !== undefined) query = query.where(column, "=", value);
  }
  if (!filter.drafts) query = query.where("status", "!=", "draft");
  return pageAfter(query, ["created_at", "desc"], "id", after, limit);
};

/** The published releases of a channel, for one runtime or for all (null). */
export const publishedReleases = (
  db: Db,
  channel: string,
  runtime: string | null,
): Promise<ReleaseRow[]> => {
  let query = db
    .selectFrom("releases")
    .selectAll()
    .where("channel", "=", channel)
    .where("status", "=", "published");
  if (runtime !== null) query = query.where("runtime", "=", runtime);
  return query.execute();
};

/** Changes a release while it has the status `was`; returns the new row, or undefined. */
export const changeRelease = (
  db: Db,
  id: string,
  was: ReleaseRow["status"],
  change: Partial<Omit<ReleaseRow, "id">>,
): Promise<ReleaseRow | undefined> =>
  db
    .updateTable("releases")
    .set(change)
    .where("id", "=", id)
    .where("status", "=", was)
    .returningAll()
    .executeTakeFirst();

/** Removes a draft and its upload; undefined if it is no longer a draft. */
export const dropDraft = async (db: Db, id: string): Promise<ReleaseRow | undefined> => {
  const dropped = await db
    .deleteFrom("releases")
    .where("id", "=", id)
    .where("status", "=", "draft")
    .returningAll()
    .executeTakeFirst();
  if (dropped?.upload_id != null) await dropUpload(db, dropped.upload_id);
  return dropped;
};

/** Records that a release was offered to an agent; the first time counts. */
export const noteOffer = async (
  db: Db,
  releaseId: string,
  agentId: string,
  nowMs: number,
): Promise<void> => {
  await db
    .insertInto("release_offers")
    .values({ release_id: releaseId, agent_id: agentId, offered_at: nowMs, confirmed_at: null })
    .onConflict((conflict) => conflict.columns(["release_id", "agent_id"]).doNothing())
    .execute();
};

export const wasOffered = (db: Db, releaseId: string, agentId: string): Promise<boolean> =>
  hasRow(
    db
      .selectFrom("release_offers")
      .select("offered_at")
      .where("release_id", "=", releaseId)
      .where("agent_id", "=", agentId),
  );

/** The releases that an agent has booted and left again for an older version, of these. */
export const leftBy = async (
  db: Db,
  agentId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> => {
  if (ids.length === 0) return new Set();
  const rows = await db
    .selectFrom("release_offers")
    .select("release_id")
    .where("agent_id", "=", agentId)
    .where("left_at", "is not", null)
    .where("release_id", "in", ids)
    .execute();
  return new Set(rows.map((row) => row.release_id));
};

/** An agent logged in with `version`: confirms the offers of that version. */
export const confirmOffers = prepared(
  (db, { agentId, version, nowMs }: { agentId: string; version: string; nowMs: number }) =>
    db
      .updateTable("release_offers")
      .set((of) => ({ confirmed_at: of.fn.coalesce("confirmed_at", of.val(nowMs)), left_at: null }))
      .where("agent_id", "=", agentId)
      .where((of) => of.or([of("confirmed_at", "is", null), of("left_at", "is not", null)]))
      .where("release_id", "in", (of) =>
        of.selectFrom("releases").select("id").where("version", "=", version),
      ),
);

/**
 * An agent that ran `version` logged in with an older one: whoever flashed it, or whatever made it
 * fall back. Returns the releases of that version that it had booted and has left now.
 */
export const leaveOffers = async (
  db: Db,
  agentId: string,
  version: string,
  nowMs: number,
): Promise<readonly string[]> => {
  const left = await db
    .updateTable("release_offers")
    .set({ left_at: nowMs })
    .where("agent_id", "=", agentId)
    .where("confirmed_at", "is not", null)
    .where("left_at", "is", null)
    .where("release_id", "in", (of) =>
      of.selectFrom("releases").select("id").where("version", "=", version),
    )
    .returning("release_id")
    .execute();
  return left.map((row) => row.release_id);
};

export type RolloutCounts = Omit<Release["rollout"], "percent" | "paused">;

/**
 * How many agents each of these releases was offered to, and how many of them have confirmed it,
 * run it by their last login, and have left it for an older version.
 */
export const rolloutCounts = async (
  db: Db,
  ids: readonly string[],
): Promise<Map<string, RolloutCounts>> => {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom("release_offers as offers")
    .innerJoin("releases", "releases.id", "offers.release_id")
    .innerJoin("agents", "agents.agent_id", "offers.agent_id")
    .select((of) => [
      "release_id",
      of.fn.countAll<number>().as("offered"),
      of.fn.count<number>("confirmed_at").as("confirmed"),
      of.fn
        .count<number>(
          of.case().when("firmware_version", "=", of.ref("releases.version")).then(1).end(),
        )
        .as("running"),
      of.fn.count<number>("left_at").as("left"),
    ])
    .where("release_id", "in", ids)
    .groupBy("release_id")
    .execute();
  return new Map(
    rows.map(({ release_id, ...counts }) => {
      const numbers = Object.entries(counts).map(([name, count]) => [name, Number(count)]);
      return [release_id, Object.fromEntries(numbers) as RolloutCounts];
    }),
  );
};
