/**
 * Notices get numbers, so that a relay reads only new ones. Earlier notices are dropped: they
 * concern relays of the previous version, none of which runs while its store is migrated.
 */
import { type Kysely, PostgresAdapter } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
  await db.schema.dropTable("notices").execute();
  await db.schema
    .createTable("notices")
    .addColumn("seq", isPostgres ? "bigserial" : "integer", (c) =>
      isPostgres ? c.primaryKey() : c.primaryKey().autoIncrement(),
    )
    .addColumn("kind", "text", (c) => c.notNull())
    .addColumn("subject", "text", (c) => c.notNull())
    .addColumn("at", "bigint", (c) => c.notNull())
    .execute();
};
