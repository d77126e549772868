/**
 * Brings a store to the newest migration, in one transaction: a start that is interrupted
 * leaves the old shape. Kysely's own Migrator is not used because it looks for its table in every
 * schema of a PostgreSQL database, so that two relays in one database would disturb each other.
 */
import { type Kysely, sql } from "kysely";
import { MIGRATIONS } from "./migrations/index.ts";

/** Any constant will do, as long as every relay takes the same one. */
const ADVISORY_LOCK = 7235491;

type MigrationsTable = { migrations: { name: string } };

/** Runs what is missing. Throws if the store knows a migration that this program does not. */
export const migrate = async (
  db: Kysely<unknown>,
  engine: "sqlite" | "postgres",
): Promise<void> => {
  await db.transaction().execute(async (tx) => {
    if (engine === "postgres")
      await sql`select pg_advisory_xact_lock(${ADVISORY_LOCK})`.execute(tx);
    await tx.schema
      .createTable("migrations")
      .ifNotExists()
      .addColumn("name", "text", (c) => c.primaryKey())
      .execute();
    const table = tx.withTables<MigrationsTable>();
    const rows = await table.selectFrom("migrations").select("name").execute();
    const done = new Set(rows.map((row) => row.name));
    for (const { name, up } of MIGRATIONS) {
      if (done.delete(name)) continue;
      await up(tx);
      await table.insertInto("migrations").values({ name }).execute();
    }
    if (done.size > 0) {
      throw new Error(
        `the store has migrations that this blindrelay-server does not know (${[...done].join(", ")}): run a newer version`,
      );
    }
  });
};
