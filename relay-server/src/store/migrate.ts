/**
 * Upgrades a store to the newest migration, in one transaction: an interrupted start leaves the old
 * schema. Kysely's own Migrator is not used because it looks for its table in every schema of a
 * PostgreSQL database, so that two relays in one database would disturb each other.
 *
 * Additive migrations are recorded in a table of their own, which earlier versions do not read:
 * they still start on the store.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Kysely, sql } from "kysely";
import { MIGRATIONS, type Migration } from "./migrations/index.ts";

/** An arbitrary constant, the same for every relay. */
const ADVISORY_LOCK = 7235491;

const TABLES = ["migrations", "additions"] as const;
type Names = { readonly name: string };
type MigrationTables = { readonly [table in (typeof TABLES)[number]]: Names };

const tableOf = ({ additive }: Migration) => (additive ? "additions" : "migrations");

/**
 * PostgreSQL queues every later statement behind a migration that waits for a lock of its table,
 * so it waits for a moment only, and lets the other nodes' statements pass between two tries.
 */
const WAITS = { lockMs: 3000, restMs: 2000, tries: 10 };

const LOCKED =
  "it could not be migrated because another connection to the database holds a lock: end its transaction (pg_stat_activity shows it), or stop the other relays on this database, and start again";

/**
 * Runs what is missing. Throws if the store has a migration that this program does not know, unless
 * it is additive.
 */
export const migrate = async (
  db: Kysely<unknown>,
  engine: "sqlite" | "postgres",
  waits = WAITS,
  known = MIGRATIONS,
): Promise<void> => {
  if (await isCurrent(db, known)) return;
  for (let tries = 1; ; tries += 1) {
    try {
      await migrateOnce(db, engine, waits.lockMs, known);
      return;
    } catch (error) {
      if (!isLocked(error)) throw error;
      if (tries === waits.tries) throw new Error(LOCKED, { cause: error });
      await sleep(waits.restMs);
    }
  }
};

/** Asked first because a migration locks the store, which a relay may be writing. */
const isCurrent = async (db: Kysely<unknown>, known: readonly Migration[]): Promise<boolean> => {
  try {
    const { missing, unknown } = await appliedTo(db, known);
    return missing.length === 0 && unknown.length === 0;
  } catch {
    return false; // a new store, or one that cannot be read: the migration says why
  }
};

/** What a store still needs, and what it has that only a newer version knows. */
interface Applied {
  readonly missing: readonly Migration[];
  /** A newer version's that are not additive: this program cannot run on the store. */
  readonly unknown: readonly string[];
  /** A newer version's additive ones. */
  readonly additions: readonly string[];
}

/** Compares the migrations of a store with this program's. */
export const appliedTo = async (db: Kysely<unknown>, known = MIGRATIONS): Promise<Applied> => {
  const done = await namesIn(db, "migrations");
  const added = await namesIn(db, "additions").catch((error: unknown) => {
    if (hasNoTable(error)) return []; // of a version before there were any
    throw error;
  });
  const all = new Set([...done, ...added]);
  const isUnknown = (name: string) => !known.some((each) => each.name === name);
  return {
    missing: known.filter(({ name }) => !all.has(name)),
    unknown: done.filter(isUnknown),
    additions: added.filter(isUnknown),
  };
};

const UNDEFINED_TABLE = "42P01";

/** Whether a query failed because its table does not exist. */
export const hasNoTable = (error: unknown): boolean =>
  error instanceof Error &&
  (("code" in error && error.code === UNDEFINED_TABLE) ||
    error.message.includes("no such table") ||
    hasNoTable(error.cause));

const namesIn = async (db: Kysely<unknown>, table: keyof MigrationTables): Promise<string[]> => {
  const rows = await db.withTables<MigrationTables>().selectFrom(table).select("name").execute();
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
  known: readonly Migration[],
): Promise<void> => {
  await db.transaction().execute(async (tx) => {
    if (engine === "postgres") {
      // For another node's migration it waits as long as that takes.
      await sql`select pg_advisory_xact_lock(${ADVISORY_LOCK})`.execute(tx);
      await sql`set local lock_timeout = ${sql.lit(lockMs)}`.execute(tx);
    }
    for (const table of TABLES) {
      await tx.schema
        .createTable(table)
        .ifNotExists()
        .addColumn("name", "text", (c) => c.primaryKey())
        .execute();
    }
    const { missing, unknown } = await appliedTo(tx, known);
    if (unknown.length > 0) {
      throw new Error(
        `the store has migrations that this blindrelay-server does not know (${unknown.join(", ")}): run a newer version`,
      );
    }
    const names = tx.withTables<MigrationTables>();
    for (const migration of missing) {
      await migration.up(tx);
      await names.insertInto(tableOf(migration)).values({ name: migration.name }).execute();
    }
  });
};
