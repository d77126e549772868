/** Users can be disabled, and actions are recorded. */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema.alterTable("users").addColumn("disabled_at", "bigint").execute();

  // Entries outlive what they name, so there are no foreign keys.
  await db.schema
    .createTable("audit")
    .addColumn("id", "text", (c) => c.primaryKey())
    .addColumn("at", "bigint", (c) => c.notNull())
    .addColumn("actor_id", "text")
    .addColumn("actor", "text")
    .addColumn("action", "text", (c) => c.notNull())
    .addColumn("subject", "text", (c) => c.notNull())
    .addColumn("detail", "text", (c) => c.notNull())
    .execute();
  await db.schema.createIndex("audit_by_time").on("audit").columns(["at", "id"]).execute();
};
