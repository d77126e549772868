/**
 * Who did what, and when. An action and its entry are one transaction, so neither
 * exists without the other. No entry ever contains a secret: the types below have no place for one.
 */
import { randomUUID } from "node:crypto";
import type { AuditAction } from "@blindrelay/protocol/schema/rest";
import { sql } from "kysely";
import { forgetOlder, forgetRows } from "./forget.ts";
import { type Position, pageAfter } from "./keyset.ts";
import type { Db } from "./open.ts";
import type { AuditRow } from "./tables.ts";

export interface Act {
  /** The user who did it; null: a command run on the data folder. */
  readonly actorId: string | null;
  readonly action: AuditAction;
  /** The identifier of the user, agent or release it was done to. */
  readonly subject: string;
  /** The access key that the user's program did it with; absent or null: none. */
  readonly key?: { readonly name: string } | null;
  /** Further details: names, versions, roles. */
  readonly detail?: Readonly<Record<string, string | number | boolean>>;
}

/** Writes an entry. Call it inside the transaction of the action. */
export const noteAct = async (tx: Db, nowMs: number, act: Act): Promise<void> => {
  const { actorId, action, subject, key = null } = act;
  const detail = key === null ? act.detail : { ...act.detail, key: key.name };
  await tx
    .insertInto("audit")
    .values((of) => ({
      id: randomUUID(),
      at: nowMs,
      actor_id: actorId,
      // The current name, because the user may be deleted before this is read.
      actor:
        actorId === null
          ? null
          : of.selectFrom("users").select("username").where("id", "=", actorId),
      action,
      subject,
      detail: JSON.stringify(detail ?? {}),
    }))
    .execute();
};

interface AuditFilter {
  readonly action?: AuditAction | undefined;
  readonly actorId?: string | undefined;
  readonly subject?: string | undefined;
}

/** Up to `limit` entries after a position, newest first. */
export const listActs = (
  db: Db,
  filter: AuditFilter,
  after: Position | null,
  limit: number,
): Promise<AuditRow[]> => {
  let query = db.selectFrom("audit").selectAll();
  if (filter.action !== undefined) query = query.where("action", "=", filter.action);
  if (filter.actorId !== undefined) query = query.where("actor_id", "=", filter.actorId);
  if (filter.subject !== undefined) query = query.where("subject", "=", filter.subject);
  return pageAfter(query, ["at", "desc"], "id", after, limit);
};

/** Deletes entries from before `beforeMs`, and all but the newest `kept` of each actor. */
export const forgetActs = async (db: Db, beforeMs: number, kept: number): Promise<void> => {
  await forgetRows(db, "audit", "id", sql`at < ${beforeMs}`);
  const busy = await db
    .selectFrom("audit")
    .select("actor_id")
    .groupBy("actor_id")
    .having((of) => of.fn.countAll<number>(), ">", kept)
    .execute();
  for (const { actor_id } of busy) {
    const of = actor_id === null ? sql`actor_id is null` : sql`actor_id = ${actor_id}`;
    await forgetOlder(db, ["audit", "id", "at"], of, kept);
  }
};
