/** Opens a store (one SQLite file, or PostgreSQL) and upgrades it to the newest migration. */
import { chmodSync, existsSync } from "node:fs";
import { Kysely } from "kysely";
import { groupCommit, type Write } from "./group-commit.ts";
import { type StoreHealth, StoreState, storeHealth } from "./health.ts";
import { hasNoTable, migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import {
  boundedPool,
  demandTables,
  PATIENT,
  type PoolFigures,
  PROMPT,
  postgresDamage,
  postgresDialect,
  refuseEncoding,
} from "./postgres.ts";
import { readSetting } from "./settings.ts";
import { readOnlySqliteDialect, sqliteDialect } from "./sqlite.ts";
import { sqliteDamage } from "./sqlite-failures.ts";
import type { Db, Tables } from "./tables.ts";
import { isHotJournal, takeBackJournal, verifyBriefly } from "./verify.ts";
import type { WalFlush } from "./wal-flush.ts";

export type { Db } from "./tables.ts";

/** `path`: of a file, or IN_MEMORY. */
export type StoreLocation =
  | { readonly engine: "sqlite"; readonly path: string }
  | { readonly engine: "postgres"; readonly url: string };

export interface Store extends StoreHealth {
  /**
   * For reading. A change that is being written may be seen before it is on the disk. With SQLite a
   * change made here is on the disk only after the next `write`.
   */
  readonly db: Db;
  /** For changes that belong together, and for those that arrive in bursts. */
  readonly write: Write;
  /** For background work that may scan whole tables. */
  readonly patient: Db;
  /** Of the connections to the database; null: it is embedded. */
  pool(): PoolFigures | null;
  close(): Promise<void>;
}

/** A SQLite store that ends with its process: nothing is flushed. */
export const IN_MEMORY = ":memory:";

/** There is no store where one is expected. */
export class StoreMissing extends Error {}

/**
 * Opens the store; `create` makes an empty one if it is missing. Rejects with StoreMissing, or with
 * the engine's own error if it cannot be reached.
 */
export const openStore = async (
  location: StoreLocation,
  create: boolean,
  known = MIGRATIONS,
): Promise<Store> => {
  if (location.engine === "sqlite" && !create && !existsSync(location.path)) {
    throw new StoreMissing(`no store at ${location.path}`);
  }
  const state = stateOf(location);
  const { db, patient, pool, wal } = connect(location, state);
  const close = async () => {
    await wal?.close();
    await db.destroy();
    if (patient !== db) await patient.destroy();
  };
  try {
    if (location.engine === "postgres") await refuseEncoding(patient as Kysely<unknown>);
    await migrate(patient as Kysely<unknown>, location.engine, undefined, known);
  } catch (error) {
    await close();
    throw error;
  }
  const write = groupCommit(db, location.engine, wal);
  const lost = () => wal?.lost() ?? null;
  const demand = async () => {
    if (location.engine === "postgres") await demandTables(db as Kysely<unknown>);
  };
  return { db, patient, ...storeHealth(db, write, state, lost, demand), pool, close };
};

const stateOf = (location: StoreLocation): StoreState =>
  location.engine === "sqlite"
    ? new StoreState(
        (cause) => sqliteDamage(cause, location.path),
        () => verifyBriefly(location.path),
      )
    : new StoreState(postgresDamage, () => undefined);

const connect = (
  location: StoreLocation,
  { heed }: StoreState,
): Pick<Store, "db" | "patient" | "pool"> & { readonly wal?: WalFlush } => {
  if (location.engine === "sqlite") {
    const { dialect, wal } = sqliteDialect(location.path, heed);
    const db = new Kysely<Tables>({ dialect });
    if (location.path === IN_MEMORY) return { db, patient: db, pool: () => null };
    chmodSync(location.path, 0o600);
    return { db, patient: db, pool: () => null, wal };
  }
  const { dialect, figures } = boundedPool(location.url, PROMPT, heed);
  return {
    db: new Kysely<Tables>({ dialect }),
    patient: new Kysely<Tables>({ dialect: postgresDialect(location.url, PATIENT, heed) }),
    pool: figures,
  };
};

/**
 * Whether a store was initialised here. Changes nothing, whatever its migrations; only what a
 * process that died was writing is undone.
 */
export const isInitialised = async (location: StoreLocation): Promise<boolean> => {
  if (location.engine === "sqlite" && !existsSync(location.path)) return false;
  try {
    return await hasKeyCheck(location);
  } catch (error) {
    if (location.engine !== "sqlite" || !isHotJournal(error)) throw error;
    takeBackJournal(location.path);
    return hasKeyCheck(location);
  }
};

const hasKeyCheck = async (location: StoreLocation): Promise<boolean> => {
  const dialect =
    location.engine === "sqlite"
      ? readOnlySqliteDialect(location.path)
      : postgresDialect(location.url, PROMPT);
  await using db = new Kysely<Tables>({ dialect });
  try {
    if (location.engine === "postgres") await refuseEncoding(db as Kysely<unknown>);
    return (await readSetting(db, "master_key_check")) !== null;
  } catch (error) {
    if (hasNoTable(error)) return false;
    throw error;
  }
};
