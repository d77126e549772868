/**
 * Users, agents, persistent tokens and sessions: all that section 1 requires the relay to remember.
 */
import type { Kysely } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await db.schema
    .createTable("settings")
    .addColumn("name", "text", (c) => c.primaryKey())
    .addColumn("value", "text", (c) => c.notNull())
    .execute();

  await db.schema
    .createTable("users")
    .addColumn("id", "text", (c) => c.primaryKey())
    .addColumn("username", "text", (c) => c.notNull().unique())
    .addColumn("role", "text", (c) => c.notNull())
    .addColumn("password_hash", "text", (c) => c.notNull())
    .addColumn("totp_secret", "text")
    .addColumn("totp_confirmed", "integer", (c) => c.notNull().defaultTo(0))
    .addColumn("totp_last_step", "bigint", (c) => c.notNull().defaultTo(0))
    .addColumn("totp_pending", "text")
    .addColumn("totp_failures", "integer", (c) => c.notNull().defaultTo(0))
    .addColumn("totp_rests_until", "bigint", (c) => c.notNull().defaultTo(0))
    .addColumn("created_at", "bigint", (c) => c.notNull())
    .execute();

  await db.schema
    .createTable("recovery_codes")
    .addColumn("hash", "text", (c) => c.primaryKey())
    .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
    .execute();

  await db.schema
    .createTable("agents")
    .addColumn("agent_id", "text", (c) => c.primaryKey())
    .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
    .addColumn("name", "text", (c) => c.notNull())
    .addColumn("metadata", "text", (c) => c.notNull())
    .addColumn("runtime", "text")
    .addColumn("firmware_version", "text")
    .addColumn("last_seen", "bigint")
    .addColumn("created_at", "bigint", (c) => c.notNull())
    .execute();
  await db.schema
    .createIndex("agents_of_user")
    .on("agents")
    .columns(["user_id", "created_at", "agent_id"])
    .execute();

  // Tokens and sessions outlive their owners, so they have no foreign keys.
  await db.schema
    .createTable("tokens")
    .addColumn("hash", "text", (c) => c.primaryKey())
    .addColumn("kind", "text", (c) => c.notNull())
    .addColumn("user_id", "text", (c) => c.notNull())
    .addColumn("agent_id", "text")
    .addColumn("nonce", "text", (c) => c.notNull())
    .addColumn("issued_at", "bigint", (c) => c.notNull())
    .addColumn("retired_at", "bigint")
    .execute();
  await db.schema
    .createIndex("tokens_of_owner")
    .on("tokens")
    .columns(["user_id", "agent_id"])
    .execute();

  await db.schema
    .createTable("sessions")
    .addColumn("hash", "text", (c) => c.primaryKey())
    .addColumn("kind", "text", (c) => c.notNull())
    .addColumn("user_id", "text", (c) => c.notNull())
    .addColumn("agent_id", "text")
    .addColumn("parent", "text")
    .addColumn("limited", "integer", (c) => c.notNull().defaultTo(0))
    .addColumn("requests_used", "integer", (c) => c.notNull().defaultTo(0))
    .addColumn("created_at", "bigint", (c) => c.notNull())
    .addColumn("expires_at", "bigint", (c) => c.notNull())
    .addColumn("ended_at", "bigint")
    .execute();
  await db.schema
    .createIndex("sessions_of_owner")
    .on("sessions")
    .columns(["user_id", "agent_id"])
    .execute();
  await db.schema.createIndex("sessions_of_parent").on("sessions").column("parent").execute();
  await db.schema.createIndex("sessions_by_expiry").on("sessions").column("expires_at").execute();
};
