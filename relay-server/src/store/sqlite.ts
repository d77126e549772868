/**
 * node:sqlite under Kysely's SQLite dialect. WAL with synchronous=FULL: a commit that was
 * acknowledged survives a killed process and a lost supply.
 */
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { type Dialect, type SqliteDatabase, SqliteDialect, type SqliteStatement } from "kysely";

/** Kysely writes the same text for the same query, so compiled statements are worth keeping. */
const MAX_STATEMENTS = 256;

/** The dialect over one database file, which is created where it is missing. */
export const sqliteDialect = (path: string): Dialect => {
  const database = new DatabaseSync(path);
  database.exec(
    "pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on; pragma busy_timeout = 5000",
  );
  return new SqliteDialect({ database: prepared(database) });
};

/** The same for looking only: not a byte of the file changes, whatever journal it was left with. */
export const readOnlySqliteDialect = (path: string): Dialect => {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
  return new SqliteDialect({ database: prepared(database) });
};

/** What Kysely asks of better-sqlite3, told by node:sqlite. */
const prepared = (database: DatabaseSync): SqliteDatabase => {
  const statements = new Map<string, SqliteStatement>();
  return {
    close: () => database.close(),
    prepare: (sql) => {
      const known = statements.get(sql);
      if (known !== undefined) return known;
      if (statements.size >= MAX_STATEMENTS) statements.clear();
      const statement = wrap(database.prepare(sql));
      statements.set(sql, statement);
      return statement;
    },
  };
};

const wrap = (statement: StatementSync): SqliteStatement => ({
  reader: statement.columns().length > 0,
  all: (parameters) => statement.all(...(parameters as SQLInputValue[])),
  run: (parameters) => statement.run(...(parameters as SQLInputValue[])),
  iterate: (parameters) =>
    statement.iterate(...(parameters as SQLInputValue[])) as IterableIterator<unknown>,
});
