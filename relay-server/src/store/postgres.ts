/** PostgreSQL under Kysely: the same tables and queries, for relays that outgrow one machine. */
import { type Dialect, PostgresDialect } from "kysely";
import pg from "pg";

const INT8 = 20; // the type's OID; times fit a double, so text is not needed

/** The dialect over a pool. A schema other than `public` goes into the URL: `?options=-c search_path=...`. */
export const postgresDialect = (url: string): Dialect => {
  const pool = new pg.Pool({
    connectionString: url,
    types: {
      getTypeParser: ((oid: number, format: "text" | "binary") =>
        oid === INT8
          ? Number
          : pg.types.getTypeParser(oid, format as "text")) as typeof pg.types.getTypeParser,
    },
  });
  // An idle connection was lost, as when PostgreSQL restarts. The pool has let go of it already, and
  // makes another for the next query, which says what is wrong if anything still is.
  pool.on("error", () => undefined);
  return new PostgresDialect({ pool });
};
