/** An index of live sessions shows whether a token has made too many. */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema
    .createIndex("sessions_live")
    .on("sessions")
    .columns(["parent", "expires_at"])
    .where("ended_at" as never, "is", null)
    .execute();
  // Finds what exceeds an actor's newest entries, so that it can be removed a few rows at a time.
  await db.schema.createIndex("audit_by_actor").on("audit").columns(["actor_id", "at"]).execute();
};
