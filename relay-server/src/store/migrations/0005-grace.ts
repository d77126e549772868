/** Retired tokens may stay valid for a while, so that a fleet survives a new master key. */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema.alterTable("tokens").addColumn("good_until", "bigint").execute();
};
