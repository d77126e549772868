/**
 * Adds the node to the index that filters lists of agents: SQLite looked up each row for it.
 * PostgreSQL would have to write the index at each login of an agent, and reads long metadata only
 * on request.
 */
import { type Kysely, PostgresAdapter } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  if (db.getExecutor().adapter instanceof PostgresAdapter) return;
  await db.schema.dropIndex("agent_lists").execute();
  await db.schema
    .createIndex("agent_lists")
    .on("agents")
    .columns(["user_id", "created_at", "agent_id", "name", "runtime", "firmware_version", "node"])
    .execute();
};
