/**
 * Lists of agents are filtered in the index: metadata may be 8 KiB a row, and is read only for one
 * page.
 */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema
    .createIndex("agent_lists")
    .on("agents")
    .columns(["user_id", "created_at", "agent_id", "name", "runtime", "firmware_version"])
    .execute();
  await db.schema.dropIndex("agents_of_user").execute();
};
