/** Which node of a cluster holds an agent's link, so that every node can say who is online. */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema.alterTable("agents").addColumn("node", "text").execute();
};
