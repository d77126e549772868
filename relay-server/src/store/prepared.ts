/**
 * The queries of every login. Kysely builds and compiles a query at each call, which cost more than
 * SQLite's own work when a fleet reconnected. These are compiled once for each open store.
 */
import type { Compilable, CompiledQuery } from "kysely";
import type { MaybePromise } from "../base/maybe-promise.ts";
import { SqliteAtHand } from "./sqlite.ts";
import type { Db } from "./tables.ts";

/** Stands for the value called `name` while a query is compiled. */
class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/**
 * A query that `build` makes from named values. It is called once for each store, with placeholders
 * instead of the values: they may be used where SQL has parameters, and must not be read. It never
 * throws: failures are rejections.
 */
export const prepared = <V extends object, Row>(
  build: (db: Db, values: V) => Compilable<Row>,
): ((db: Db, values: V) => MaybePromise<Row[]>) => {
  const placeholders = new Proxy({} as V, {
    get: (_, name) => new Placeholder(String(name)),
  });
  // Keyed by adapter, which all transactions of one Kysely share.
  const compiled = new WeakMap<object, CompiledQuery<Row>>();
  return (db, values) => {
    const { adapter } = db.getExecutor();
    let query = compiled.get(adapter);
    if (query === undefined) {
      query = build(db, placeholders).compile();
      compiled.set(adapter, query);
    }
    const parameters = query.parameters.map((parameter) =>
      parameter instanceof Placeholder ? values[parameter.name as keyof V] : parameter,
    );
    const atHand =
      adapter instanceof SqliteAtHand ? adapter.ask<Row>(query.sql, parameters, db) : null;
    return atHand ?? db.executeQuery<Row>({ ...query, parameters }).then(({ rows }) => rows);
  };
};
