/** When a device that had booted a release logged in with an older version. */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema.alterTable("release_offers").addColumn("left_at", "bigint").execute();
};
