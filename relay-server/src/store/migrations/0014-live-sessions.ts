/** Whether a token has made too many sessions is read from an index of those that live. */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema
    .createIndex("sessions_live")
    .on("sessions")
    .columns(["parent", "expires_at"])
    .where("ended_at" as never, "is", null)
    .execute();
  // So that what is beyond an actor's newest is found, and removed a few at a time.
  await db.schema.createIndex("audit_by_actor").on("audit").columns(["actor_id", "at"]).execute();
};
