/**
 * Upgrades a store to the newest migration, in one transaction: an interrupted start leaves the old
 * schema. Kysely's own Migrator is not used because it looks for its table in every schema of a
 * PostgreSQL database, so that two relays in one database would disturb each other.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Kysely, sql } from "kysely";
import { MIGRATIONS } from "./migrations/index.ts";

/** An arbitrary constant, the same for every relay. */
const ADVISORY_LOCK = 7235491;

type MigrationsTable = { migrations: { name: string } };

/**
 * PostgreSQL queues every later statement behind a migration that waits for a lock of its table,
 * so it waits for a moment only, and lets the other nodes' statements pass between two tries.
 */
const WAITS = { lockMs: 3000, restMs: 2000, tries: 10 };

const LOCKED =
  "it could not be migrated because another connection to the database holds a lock: end its transaction (pg_stat_activity shows it), or stop the other relays on this database, and start again";

/** Runs what is missing. Throws if the store knows a migration that this program does not. */
export const migrate = async (
  db: Kysely<unknown>,
  engine: "sqlite" | "postgres",
  waits = WAITS,
): Promise<void> => {
  if (await isCurrent(db)) return;
  for (let tries = 1; ; tries += 1) {
    try {
      await migrateOnce(db, engine, waits.lockMs);
      return;
    } catch (error) {
      if (!isLocked(error)) throw error;
      if (tries === waits.tries) throw new Error(LOCKED, { cause: error });
      await sleep(waits.restMs);
    }
  }
};

/** Asked first because a migration locks the store, which a relay may be writing. */
const isCurrent = async (db: Kysely<unknown>): Promise<boolean> => {
  try {
    const rows = await namesIn(db);
    return rows.length === MIGRATIONS.length && MIGRATIONS.every(({ name }) => rows.includes(name));
  } catch {
    return false; // a new store, or one that cannot be read: the migration says why
  }
};

const namesIn = async (db: Kysely<unknown>): Promise<string[]> => {
  const rows = await db
    .withTables<MigrationsTable>()
    .selectFrom("migrations")
    .select("name")
    .execute();
  return rows.map(({ name }) => name);
};

/** lock_not_available and deadlock_detected. */
const isLocked = (error: unknown): boolean =>
  [error, (error as Error).cause].some((each) =>
    ["55P03", "40P01"].includes((each as { code?: string } | undefined)?.code ?? ""),
  );

const migrateOnce = async (
  db: Kysely<unknown>,
  engine: "sqlite" | "postgres",
  lockMs: number,
): Promise<void> => {
  await db.transaction().execute(async (tx) => {
    if (engine === "postgres") {
      // For another node's migration it waits as long as that takes.
      await sql`select pg_advisory_xact_lock(${ADVISORY_LOCK})`.execute(tx);
      await sql`set local lock_timeout = ${sql.lit(lockMs)}`.execute(tx);
    }
    await tx.schema
      .createTable("migrations")
      .ifNotExists()
      .addColumn("name", "text", (c) => c.primaryKey())
      .execute();
    const table = tx.withTables<MigrationsTable>();
    const done = new Set(await namesIn(tx));
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
