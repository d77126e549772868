/** Labels of agents: with the agent, as it is answered, and by key and value, for selectors. */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema
    .alterTable("agents")
    .addColumn("labels", "text", (c) => c.notNull().defaultTo("{}"))
    .execute();
  await db.schema
    .createTable("agent_labels")
    .addColumn("agent_id", "text", (c) =>
      c.notNull().references("agents.agent_id").onDelete("cascade"),
    )
    .addColumn("user_id", "text", (c) => c.notNull())
    .addColumn("key", "text", (c) => c.notNull())
    .addColumn("value", "text", (c) => c.notNull())
    .addPrimaryKeyConstraint("agent_labels_key", ["agent_id", "key"])
    .execute();
  await db.schema
    .createIndex("agent_labels_of_user")
    .on("agent_labels")
    .columns(["user_id", "key", "value", "agent_id"])
    .execute();
};
