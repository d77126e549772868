/** Firmware releases, their artifacts in parts, and which agents they were offered to. */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // An artifact is complete once a release names its upload.
  await db.schema
    .createTable("uploads")
    .addColumn("id", "text", (c) => c.primaryKey())
    .addColumn("started_at", "bigint", (c) => c.notNull())
    .execute();
  await db.schema
    .createTable("upload_parts")
    .addColumn("upload_id", "text", (c) => c.notNull().references("uploads.id").onDelete("cascade"))
    .addColumn("part", "integer", (c) => c.notNull())
    .addColumn("bytes", "bytea", (c) => c.notNull()) // SQLite accepts any name for a type
    .addPrimaryKeyConstraint("upload_parts_key", ["upload_id", "part"])
    .execute();

  await db.schema
    .createTable("releases")
    .addColumn("id", "text", (c) => c.primaryKey())
    .addColumn("runtime", "text", (c) => c.notNull())
    .addColumn("channel", "text", (c) => c.notNull())
    .addColumn("version", "text", (c) => c.notNull())
    .addColumn("status", "text", (c) => c.notNull())
    .addColumn("notes", "text", (c) => c.notNull())
    .addColumn("upload_id", "text", (c) => c.references("uploads.id"))
    .addColumn("size", "bigint")
    .addColumn("sha256", "text")
    .addColumn("signature", "text")
    .addColumn("key_id", "text")
    .addColumn("percent", "integer", (c) => c.notNull())
    .addColumn("paused", "integer", (c) => c.notNull())
    .addColumn("created_at", "bigint", (c) => c.notNull())
    .addColumn("published_at", "bigint")
    .addUniqueConstraint("releases_version", ["runtime", "channel", "version"])
    .execute();

  await db.schema
    .createTable("release_offers")
    .addColumn("release_id", "text", (c) =>
      c.notNull().references("releases.id").onDelete("cascade"),
    )
    .addColumn("agent_id", "text", (c) =>
      c.notNull().references("agents.agent_id").onDelete("cascade"),
    )
    .addColumn("offered_at", "bigint", (c) => c.notNull())
    .addColumn("confirmed_at", "bigint")
    .addPrimaryKeyConstraint("release_offers_key", ["release_id", "agent_id"])
    .execute();
  await db.schema
    .createIndex("release_offers_of_agent")
    .on("release_offers")
    .column("agent_id")
    .execute();
};
