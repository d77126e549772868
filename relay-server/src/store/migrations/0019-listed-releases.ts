/** The second signed text of releases: its numbers, and the signatures as JSON. */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema.alterTable("releases").addColumn("list", "bigint").execute();
  await db.schema.alterTable("releases").addColumn("not_after", "bigint").execute();
  await db.schema
    .alterTable("releases")
    .addColumn("signatures", "text", (c) => c.notNull().defaultTo("[]"))
    .execute();
};
