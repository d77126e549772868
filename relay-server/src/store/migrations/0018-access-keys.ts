/** Access keys. A removed one stays for a while, so that its holder is not taken for a guesser. */
import { type Kysely, sql } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema
    .createTable("access_keys")
    .addColumn("id", "text", (c) => c.primaryKey())
    .addColumn("hash", "text", (c) => c.notNull().unique())
    .addColumn("user_id", "text", (c) => c.notNull())
    .addColumn("name", "text", (c) => c.notNull())
    .addColumn("scopes", "text", (c) => c.notNull())
    .addColumn("selector", "text")
    .addColumn("created_at", "bigint", (c) => c.notNull())
    .addColumn("expires_at", "bigint")
    .addColumn("last_used_at", "bigint")
    .addColumn("removed_at", "bigint")
    .execute();
  await db.schema
    .createIndex("access_key_names")
    .on("access_keys")
    .columns(["user_id", "name"])
    .unique()
    .where(sql.ref("removed_at"), "is", null)
    .execute();
};
