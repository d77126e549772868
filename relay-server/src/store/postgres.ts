/**
 * PostgreSQL under Kysely: the same tables and queries, for relays that outgrow one machine. Every
 * wait is bounded: if the database is unreachable, frozen or restarting, queries fail with
 * `StoreUnavailable`.
 */
import type { Duplex } from "node:stream";
import { messageOf } from "@blindrelay/protocol/command-line";
import { type Dialect, type Kysely, PostgresDialect, type PostgresPool, sql } from "kysely";
import pg from "pg";
import { contained, detached } from "../base/contain.ts";
import { BOUNDS } from "./bounds.ts";
import { StoreDamaged, StoreUnavailable } from "./unavailable.ts";

const INT8 = 20; // the type's OID; times fit into a double, so text is not needed

/** How patiently a pool waits, in milliseconds. */
interface Patience {
  /** A database that has not responded at all for this long counts as gone. */
  readonly silence: number;
  /** The limit of one statement, which may wait for a lock even if the database responds. */
  readonly statement: number;
  readonly connections: number;
}

/** For requests that somebody waits for: the 503 must be sent within two seconds. */
export const PROMPT: Patience = { silence: 1200, statement: 10_000, connections: 10 };
/** For migrations, retention and commands, whose statements may scan a whole table. */
export const PATIENT: Patience = { silence: 600_000, statement: 600_000, connections: 1 };
/** A connection attempt that takes longer is given up, so that its place in the pool is free. */
const CONNECT_MS = 3000;
/** How long a pool's connections may take to close. */
const CLOSE_MS = 1000;

/** Figures of a pool's connections, and of queries that wait for one. */
export interface PoolFigures {
  readonly used: number;
  readonly idle: number;
  readonly waiting: number;
}

interface BoundedPool {
  readonly dialect: Dialect;
  figures(): PoolFigures;
}

/**
 * The dialect over a pool. A schema other than `public` is part of the URL: `?options=-c
 * search_path=...`.
 */
export const postgresDialect = (
  url: string,
  patience: Patience,
  heed: (damage: StoreDamaged) => void = () => undefined,
): Dialect => boundedPool(url, patience, heed).dialect;

class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super({ ...config, connectionTimeoutMillis: CONNECT_MS });
  }
}

/** Providers print weaker modes, which pg takes for this one, with a warning. */
const strict = (url: string): string =>
  url.includes("uselibpqcompat=")
    ? url
    : url.replace(/(?<=[?&]sslmode=)(prefer|require|verify-ca)(?=&|$)/, "verify-full");

/** `heed`: hears of each answer that says that the database is damaged, whatever asked. */
export const boundedPool = (
  given: string,
  patience: Patience,
  heed: (damage: StoreDamaged) => void = () => undefined,
): BoundedPool => {
  const url = strict(given);
  const pool = new pg.Pool({
    connectionString: url,
    Client,
    max: patience.connections,
    // Limits the wait for a free connection; `Client` limits connecting.
    connectionTimeoutMillis: patience.statement,
    statement_timeout: patience.statement,
    idle_in_transaction_session_timeout: patience.statement,
    types: {
      getTypeParser: ((oid: number, format: "text" | "binary") =>
        oid === INT8
          ? Number
          : pg.types.getTypeParser(oid, format as "text")) as typeof pg.types.getTypeParser,
    },
  });
  /** When the database last responded; getting an idle connection does not count. */
  let heardMs = 0;
  /**
   * The database counts as down: until it responds, other queries fail at once instead of timing
   * out.
   */
  let gone = false;
  const heard = <T>(value: T): T => {
    heardMs = performance.now();
    gone = false;
    return value;
  };
  const open = new Set<pg.PoolClient>();
  const onConnect = (client: pg.PoolClient) => {
    heard(open.add(client));
    // A connection was lost while in use: its query is rejected too, which is enough.
    client.on("error", () => undefined);
  };
  pool.on("connect", contained("store", "a connection is not known", onConnect));
  pool.on("remove", (client) => open.delete(client));
  // An idle connection was lost, for example when PostgreSQL restarts. The pool has already dropped
  // it, and opens another for the next query, which reports any remaining problem.
  pool.on("error", () => undefined);

  /** A statement without a response may wait for a lock, so PostgreSQL is checked separately. */
  let probing = false;
  const probe = async (): Promise<void> => {
    if (probing) return;
    probing = true;
    const client = new Client({ connectionString: url, query_timeout: CONNECT_MS });
    client.on("error", () => undefined);
    try {
      await client.connect();
      heard(await client.query("select 1"));
    } catch {
      // Then it is still silent, and waiting queries fail in time.
    } finally {
      probing = false;
      streamOf(client).destroy();
    }
  };
  const probeNow = (): void => detached("store", "PostgreSQL was not checked", probe());
  /**
   * Rejects once the database has been silent for too long, or the statement's own limit has
   * passed.
   */
  const bounded = <T>(answer: Promise<T>, giveUp: () => void): Promise<T> =>
    new Promise((resolve, reject) => {
      const startedMs = performance.now();
      let settled = false;
      const deadline = () =>
        Math.min(Math.max(heardMs, startedMs) + patience.silence, startedMs + patience.statement);
      const look = (): void => {
        if (settled) return;
        const left = deadline() - performance.now();
        if (left > 0) {
          const suspicious = left <= patience.silence / 2;
          if (suspicious) probeNow();
          timer = setTimeout(lookSoon, suspicious ? left : left - patience.silence / 2);
          return;
        }
        gone = performance.now() - Math.max(heardMs, startedMs) >= patience.silence;
        reject(silent());
        giveUp();
      };
      // First handles what arrived while this process was busy: the silence may have been its own.
      const lookNow = contained("store", "an answer is not waited for", look);
      const lookSoon = contained("store", "an answer is not waited for", () => {
        setImmediate(lookNow);
      });
      let timer = setTimeout(lookSoon, patience.silence / 2);
      answer
        .then(resolve, (error: unknown) => {
          if (error instanceof pg.DatabaseError) heard(null);
          const failure = classified(error);
          if (failure instanceof StoreDamaged) heed(failure);
          reject(failure);
        })
        .finally(() => {
          settled = true;
          clearTimeout(timer);
        });
    });

  const connect = async () => {
    if (gone) {
      probeNow();
      throw silent();
    }
    const connecting = pool.connect();
    let late = false;
    connecting.then(
      (client) => late && client.release(),
      () => undefined,
    );
    const client = await bounded(connecting, () => {
      late = true;
    });
    // After its first failure of this kind a connection is neither used again nor returned to the
    // pool.
    let broken: StoreUnavailable | null = null;
    return {
      query: async (sql: string, parameters: readonly unknown[]) => {
        if (broken !== null) throw broken;
        try {
          const answer = client.query(sql, [...parameters]);
          return heard(await bounded(answer, () => streamOf(client).destroy()));
        } catch (error) {
          if (error instanceof StoreUnavailable) broken = error;
          throw error;
        }
      },
      release: () => client.release(broken ?? undefined),
    };
  };

  const end = async (): Promise<void> => {
    const cut = contained("store", "a connection stays", () => {
      for (const client of open) streamOf(client).destroy();
    });
    const timer = setTimeout(cut, CLOSE_MS);
    await pool.end().finally(() => clearTimeout(timer));
  };
  const bounds = { connect, end, options: pool.options } as unknown as PostgresPool;
  return {
    dialect: new PostgresDialect({ pool: bounds }),
    figures: () => ({
      used: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
  };
};

/** UTF-8, and what passes all bytes on: any other encoding lacks letters that users may send. */
const ENCODINGS = ["UTF8", "SQL_ASCII"];

/** Of a database in an encoding that cannot hold every text; null: it can. */
export const encodingProblem = async (db: Kysely<unknown>): Promise<string | null> => {
  const { rows } = await sql<{ name: string }>`
    select current_setting('server_encoding') as name`.execute(db);
  const name = rows[0]?.name ?? "unknown";
  return ENCODINGS.includes(name)
    ? null
    : `the database's encoding is ${name}, which lacks most letters: make one with create database NAME encoding 'UTF8' template template0`;
};

export const refuseEncoding = async (db: Kysely<unknown>): Promise<void> => {
  const problem = await encodingProblem(db);
  if (problem !== null) throw new Error(problem);
};

/** Rejects if a table is not there, or not for this role: the others would still answer. */
export const demandTables = async (db: Kysely<unknown>): Promise<void> => {
  const { rows } = await sql<{ name: string }>`
    select name from unnest(${Object.keys(BOUNDS)}::text[]) as name
    where not has_table_privilege(name, 'select') or not has_table_privilege(name, 'insert')`.execute(
    db,
  );
  if (rows.length === 0) return;
  throw new StoreUnavailable(new Error(`permission denied for table ${rows[0]?.name}`));
};

const silent = (): StoreUnavailable =>
  new StoreUnavailable(new Error("PostgreSQL does not answer"));

/** pg has no other way to end a connection to a server that does not respond. */
const streamOf = (client: pg.ClientBase): Duplex =>
  (client as unknown as { connection: { stream: Duplex } }).connection.stream;

/**
 * Classes of SQLSTATE (PostgreSQL's appendix A) after which a retry may succeed: 08 connection, 28
 * a login that is refused (a password is being rotated), 53 resources (a full disk, too many
 * connections), 57 operator intervention (a shutdown, a statement timeout), 58 the system's own
 * errors; 25006 a standby that cannot write, 55P03 and 25P03 timeouts; 3D000, 3F000, 42P01 and
 * 42501 a database, schema or table that is not there, or not for this role (it is being restored).
 */
const PASSING = /^(08|28|53|57|58)|^(25006|25P03|3D000|3F000|42501|42P01|55P03)$/;

/**
 * data_corrupted, index_corrupted, io_error, undefined_file: what the database has on its disk is
 * broken or gone.
 */
const DAMAGED: readonly (string | undefined)[] = ["XX001", "XX002", "58030", "58P01"];

const WAY_BACK =
  'repair the database or restore it, then start the relays again (docs/keys-and-backups.md, "A damaged store")';

export const postgresDamage = (cause: unknown): StoreDamaged =>
  new StoreDamaged(cause, "the PostgreSQL database", WAY_BACK);

/** PgBouncer's code for all errors of its own, such as a full pool, which pass. */
const PROTOCOL_VIOLATION = "08P01";
/** What PgBouncer says about parameters of a connection that it was not told to accept. */
const UNSUPPORTED = /unsupported startup parameter/;
const PGBOUNCER =
  "PgBouncer must be told ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout (docs/cluster.md)";

/** A role that owns nothing may not create in `public`, from PostgreSQL 15 on. */
const NO_SCHEMA = /^permission denied for schema (\S+)$/;

/** What Node says of a certificate that it does not trust. */
const UNTRUSTED = /^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|CERT_|ERR_TLS_CERT)/;
const AUTHORITY =
  "every sslmode but disable verifies the certificate: name its authority with &sslrootcert=FILE in the address (docs/cluster.md)";

const classified = (error: unknown): unknown => {
  if (error instanceof StoreUnavailable) return error;
  // Waiting does not help, so it must not look like an outage.
  if (
    error instanceof pg.DatabaseError &&
    error.code === PROTOCOL_VIOLATION &&
    UNSUPPORTED.test(error.message)
  ) {
    return new Error(`${error.message}; ${PGBOUNCER}`, { cause: error });
  }
  if (error instanceof pg.DatabaseError && DAMAGED.includes(error.code)) {
    const cause = new Error(`${error.code}: ${error.message}`, { cause: error });
    return postgresDamage(cause);
  }
  if (error instanceof Error && UNTRUSTED.test((error as NodeJS.ErrnoException).code ?? "")) {
    return new StoreUnavailable(new Error(`${error.message}; ${AUTHORITY}`, { cause: error }));
  }
  const [, schema] = (error instanceof Error && NO_SCHEMA.exec(error.message)) || [];
  if (schema !== undefined) {
    const advice = `grant usage, create on schema ${schema} to the address's role, or specify another schema (docs/operations.md)`;
    return new StoreUnavailable(new Error(`${messageOf(error)}; ${advice}`, { cause: error }));
  }
  // An error that was not sent by the database means that it could not be reached.
  const passing = error instanceof pg.DatabaseError ? PASSING.test(error.code ?? "") : true;
  return passing ? new StoreUnavailable(error) : error;
};
