/** Where users have logged in from, and whose notice it is, so that each user's can be bounded. */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema
    .createTable("known_addresses")
    .addColumn("print", "text", (c) => c.primaryKey())
    .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
    .addColumn("seen_at", "bigint", (c) => c.notNull())
    .execute();
  await db.schema
    .createIndex("known_addresses_of_user")
    .on("known_addresses")
    .columns(["user_id", "seen_at"])
    .execute();
  await db.schema.alterTable("notices").addColumn("user_id", "text").execute();
};
