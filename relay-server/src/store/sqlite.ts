/**
 * node:sqlite under Kysely's SQLite dialect, with a write-ahead log that SQLite does not flush
 * (synchronous=NORMAL): `wal-flush.ts` does, before a change is acknowledged. So it survives a
 * killed process and a power failure.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import {
  type Dialect,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDialect,
  type SqliteStatement,
} from "kysely";
import type { MaybePromise } from "../base/maybe-promise.ts";
import { openSqlite } from "./open-sqlite.ts";
import { classifier, type Heed, type Run } from "./sqlite-failures.ts";
import { MAX_PAGES, WalFlush } from "./wal-flush.ts";

/** Kysely generates the same text for the same query, so compiled statements are worth keeping. */
const MAX_STATEMENTS = 256;

/** The dialect over one database file, created if it is missing, and what flushes it. */
export const sqliteDialect = (path: string, heed: Heed): { dialect: Dialect; wal: WalFlush } => {
  const run = classifier(path, heed);
  return run(() => {
    const database = openSqlite(path);
    try {
      database.exec(
        `pragma journal_mode = wal; pragma synchronous = normal; pragma foreign_keys = on;
        pragma wal_autocheckpoint = ${MAX_PAGES}`,
      );
    } catch (error) {
      database.close();
      throw error;
    }
    return { dialect: new AtHandDialect(database, run), wal: new WalFlush(database, path, run) };
  });
};

/** The same, read-only: not a byte of the file changes, whatever journal it was left with. */
export const readOnlySqliteDialect = (path: string): Dialect => {
  const run = classifier(path, () => undefined);
  const database = openSqlite(path, { readOnly: true });
  return new AtHandDialect(database, run);
};

class AtHandDialect extends SqliteDialect {
  readonly #adapter: SqliteAtHand;

  constructor(database: DatabaseSync, run: Run) {
    const statements = prepared(database, run);
    super({ database: statements });
    this.#adapter = new SqliteAtHand(database, statements);
  }

  override createAdapter(): SqliteAdapter {
    return this.#adapter;
  }
}

/** Kysely returns every answer as a promise; this can also query the database synchronously. */
export class SqliteAtHand extends SqliteAdapter {
  readonly #database: DatabaseSync;
  readonly #statements: SqliteDatabase;

  constructor(database: DatabaseSync, statements: SqliteDatabase) {
    super();
    this.#database = database;
    this.#statements = statements;
  }

  /**
   * The rows of a query, or a rejection; null if Kysely has to be used, because another caller's
   * transaction is open on the one connection, and its changes may be undone.
   */
  ask<Row>(
    sql: string,
    parameters: readonly unknown[],
    asker: { readonly isTransaction: boolean },
  ): MaybePromise<Row[]> | null {
    try {
      if (this.#database.isTransaction !== asker.isTransaction) return null;
      const statement = this.#statements.prepare(sql);
      if (statement.reader) return statement.all(parameters) as Row[];
      statement.run(parameters);
      return [];
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

/** The interface of better-sqlite3 that Kysely needs, over node:sqlite. */
const prepared = (database: DatabaseSync, run: Run): SqliteDatabase => {
  const statements = new Map<string, SqliteStatement>();
  return {
    close: () => database.close(),
    prepare: (sql) => {
      const known = statements.get(sql);
      if (known !== undefined) return known;
      if (statements.size >= MAX_STATEMENTS) statements.clear();
      const statement =
        sql === "rollback" ? rollback(database) : run(() => wrap(database.prepare(text(sql)), run));
      statements.set(sql, statement);
      return statement;
    },
  };
};

/**
 * A transaction that reads first and writes then is refused at once, without a wait, where another
 * process has written in between.
 */
const text = (sql: string): string => (sql === "begin" ? "begin immediate" : sql);

const wrap = (statement: StatementSync, run: Run): SqliteStatement => ({
  reader: statement.columns().length > 0,
  all: (parameters) => run(() => statement.all(...(parameters as SQLInputValue[]))),
  run: (parameters) => run(() => statement.run(...(parameters as SQLInputValue[]))),
  iterate: (parameters) =>
    statement.iterate(...(parameters as SQLInputValue[])) as IterableIterator<unknown>,
});

/**
 * SQLite has rolled back by itself after some errors; complaining of that would hide which one it
 * was.
 */
const rollback = (database: DatabaseSync): SqliteStatement => ({
  reader: false,
  all: () => [],
  run: () => {
    if (database.isTransaction) database.exec("rollback");
    return { changes: 0, lastInsertRowid: 0 };
  },
  iterate: () => [].values(),
});
