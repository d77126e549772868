/** Opens a store: embedded (one SQLite file) or PostgreSQL, brought to the newest migration. */
import { chmodSync, existsSync } from "node:fs";
import { Kysely } from "kysely";
import { groupCommit, type Write } from "./group-commit.ts";
import { migrate } from "./migrate.ts";
import { postgresDialect } from "./postgres.ts";
import { sqliteDialect } from "./sqlite.ts";
import type { Tables } from "./tables.ts";

export type StoreLocation =
  | { readonly engine: "sqlite"; readonly path: string }
  | { readonly engine: "postgres"; readonly url: string };

/** The handle that every query of this folder takes; a transaction is one too. */
export type Db = Kysely<Tables>;

export interface Store {
  /** For reading, and for single changes. */
  readonly db: Db;
  /** For changes that belong together, and for those that come in crowds. */
  readonly write: Write;
  close(): Promise<void>;
}

/** There is no store where one was expected. */
export class StoreMissing extends Error {}

/**
 * Opens the store, making an empty one where `create` says so.
 * Rejects with StoreMissing, or with the engine's own error where it cannot be reached.
 */
export const openStore = async (location: StoreLocation, create: boolean): Promise<Store> => {
  if (location.engine === "sqlite" && !create && !existsSync(location.path)) {
    throw new StoreMissing(`no store at ${location.path}`);
  }
  const dialect =
    location.engine === "sqlite" ? sqliteDialect(location.path) : postgresDialect(location.url);
  if (location.engine === "sqlite") chmodSync(location.path, 0o600);
  const db = new Kysely<Tables>({ dialect });
  try {
    await migrate(db as Kysely<unknown>, location.engine);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  const write: Write =
    location.engine === "sqlite" ? groupCommit(db) : (work) => db.transaction().execute(work);
  return { db, write, close: () => db.destroy() };
};
