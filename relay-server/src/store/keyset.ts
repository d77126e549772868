/** Keyset pagination: a page of a list begins after the last row of the page before it. */
import { type SelectQueryBuilder, type StringReference, sql } from "kysely";
import type { Tables } from "./tables.ts";

/** The position after which a page of a list begins, in the list's order of time. */
export interface Position {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Orders rows of the same millisecond. */
  readonly id: string;
}

/** Up to `limit` rows from after a position, ordered by the columns `at` and, ascending, `id`. */
export const pageAfter = <Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  [at, direction]: readonly [at: StringReference<Tables, Table>, direction: "asc" | "desc"],
  id: StringReference<Tables, Table>,
  after: Position | null,
  limit: number,
): Promise<Row[]> => {
  const time = sql.ref<number>(at);
  const key = sql.ref<string>(id);
  const [beyond, notBefore] = direction === "asc" ? ([">", ">="] as const) : (["<", "<="] as const);
  const rest =
    after === null
      ? query
      : query
          .where(time, notBefore, after.at) // by itself: SQLite seeks to it in the index
          .where((is) => is.or([is(time, beyond, after.at), is(key, ">", after.id)]));
  return rest.orderBy(time, direction).orderBy(key).limit(limit).execute();
};
