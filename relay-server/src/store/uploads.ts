/**
 * Artifacts in parts, inside the store: a backup contains them, every node sees them, and a release
 * never refers to missing parts.
 */
import { sql } from "kysely";
import type { Db } from "./open.ts";

/** Small enough to be negligible in memory, large enough that an image has few rows. */
export const PART_BYTES = 262_144;

export const beginUpload = async (db: Db, id: string, nowMs: number): Promise<void> => {
  await db.insertInto("uploads").values({ id, started_at: nowMs }).execute();
};

/** Adds the part with this number, from 0. All but the last have PART_BYTES. */
export const addPart = async (
  db: Db,
  uploadId: string,
  part: number,
  bytes: Uint8Array,
): Promise<void> => {
  await db.insertInto("upload_parts").values({ upload_id: uploadId, part, bytes }).execute();
};

/** At most `length` bytes of a part, from number `from` on; undefined if there is no such part. */
export const readPart = async (
  db: Db,
  uploadId: string,
  part: number,
  from = 0,
  length = PART_BYTES,
): Promise<Uint8Array | undefined> => {
  const row = await db
    .selectFrom("upload_parts")
    .select(sql<Uint8Array>`substr(bytes, ${from + 1}, ${length})`.as("bytes"))
    .where("upload_id", "=", uploadId)
    .where("part", "=", part)
    .executeTakeFirst();
  return row?.bytes;
};

export const dropUpload = async (db: Db, id: string): Promise<void> => {
  await db.deleteFrom("uploads").where("id", "=", id).execute();
};

/** Deletes uploads begun before `beforeMs` that belong to no release: left by a crash. */
export const forgetUploads = async (db: Db, beforeMs: number): Promise<void> => {
  await db
    .deleteFrom("uploads")
    .where("started_at", "<", beforeMs)
    .where("id", "not in", (of) =>
      of.selectFrom("releases").select("upload_id").where("upload_id", "is not", null).$castTo<{
        upload_id: string;
      }>(),
    )
    .execute();
};
