/**
 * Group commit: work that arrives in one turn of the event loop, during a transaction or soon after
 * it, shares the next transaction, and so one flush to disk. When a fleet reconnects at once, each
 * device needs a session; flushed one by one, 5,000 of them blocked the loop for 15 s on a slow
 * disk.
 */
import { type Kysely, sql } from "kysely";
import { detached } from "../base/contain.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { Tables } from "./tables.ts";
import { unavailability } from "./unavailable.ts";

/**
 * Runs work in a transaction; its promise settles once the result is on disk, or undone. Work may
 * run more than once, each time after the previous attempt was undone.
 */
export type Write = <T>(work: (tx: Kysely<Tables>) => MaybePromise<T>) => Promise<T>;

/**
 * Limits the size of a transaction while more work arrives; with PostgreSQL every statement is a
 * round trip, and other nodes wait for the locks.
 */
const MAX_TOGETHER = { sqlite: 256, postgres: 64 } as const;

/**
 * The shortest pause between two transactions that are flushed here, in milliseconds. node:sqlite
 * never lets the loop turn, so without it work that arrives a turn later would have its own flush,
 * as two thirds of a fleet's logins did. A caller that writes one thing after another waits this
 * long each time.
 */
export const REST_MS = 5;

interface Job {
  readonly work: (tx: Kysely<Tables>) => MaybePromise<unknown>;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** Tells the owner of a job how it ended. */
type Settle = () => void;

/** Commits some jobs; rejects if none of them could be. */
type Commit = (db: Kysely<Tables>, jobs: readonly Job[]) => Promise<Settle[]>;

/** What makes commits last, where the engine leaves that to us. */
export interface Disk {
  /** Before a commit; rejects with StoreUnavailable if there must be none. */
  prepare(): Promise<void>;
  /** After it: resolves when all that was committed is on the disk. */
  flush(writes: number): Promise<void>;
}

/** A Write over one engine. Work that throws undoes its own changes only. */
export const groupCommit = (
  db: Kysely<Tables>,
  engine: keyof typeof MAX_TOGETHER,
  disk?: Disk,
): Write => {
  const max = MAX_TOGETHER[engine];
  const waiting: Job[] = [];
  let running = false;
  let restsUntil = Number.NEGATIVE_INFINITY; // by performance.now()
  const run = async (): Promise<void> => {
    running = true;
    while (waiting.length > 0) {
      await gathered(restsUntil - performance.now());
      const jobs = waiting.splice(0, max);
      try {
        await disk?.prepare();
        const outcomes = await commitJobs(db, jobs);
        await disk?.flush(jobs.length);
        for (const settle of outcomes) settle();
      } catch (error) {
        // Writes that have arrived since would wait as long again for the same answer.
        const refused = unavailability(error) === null ? jobs : [...jobs, ...waiting.splice(0)];
        for (const job of refused) job.reject(error);
      }
      restsUntil = performance.now() + (disk === undefined ? 0 : REST_MS);
    }
    running = false;
  };
  return (work) =>
    new Promise((resolve, reject) => {
      waiting.push({ work, resolve, reject });
      if (!running) detached("store", "a commit failed", run());
    });
};

/** After this many milliseconds, and never before the next turn. */
const gathered = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    if (ms > 0) setTimeout(resolve, ms);
    else setImmediate(resolve);
  });

/**
 * Savepoints would cost two statements per job (on PostgreSQL two round trips), and work seldom
 * throws, so they are used only after some work has thrown; after a deadlock each job gets a
 * transaction of its own.
 */
const commitJobs: Commit = async (db, jobs) => {
  for (const commit of jobs.length === 1 ? [] : [commitTogether, commitApart]) {
    try {
      return await commit(db, jobs);
    } catch (error) {
      if (unavailability(error) !== null) throw error;
    }
  }
  return commitEach(db, jobs);
};

/** One transaction with a savepoint around each job. */
const commitApart: Commit = async (db, jobs) => {
  const outcomes: Settle[] = [];
  await db.transaction().execute(async (tx) => {
    for (const job of jobs) outcomes.push(await attempt(tx, job));
  });
  return outcomes;
};

/** Does one job between savepoints. */
const attempt = async (tx: Kysely<Tables>, job: Job): Promise<Settle> => {
  await sql`savepoint job`.execute(tx);
  try {
    const value = await job.work(tx);
    await sql`release savepoint job`.execute(tx);
    return () => job.resolve(value as never);
  } catch (error) {
    // After a full or broken disk SQLite has rolled back the whole transaction.
    if (unavailability(error) !== null || mayRunAgain(error)) throw error;
    await sql`rollback to savepoint job`.execute(tx);
    await sql`release savepoint job`.execute(tx);
    return () => job.reject(error);
  }
};

const commitTogether: Commit = async (db, jobs) => {
  const values = await db.transaction().execute(async (tx) => {
    const done: unknown[] = [];
    for (const job of jobs) done.push(await job.work(tx));
    return done;
  });
  return jobs.map((job, index) => () => job.resolve(values[index] as never));
};

const commitEach: Commit = async (db, jobs) => {
  const outcomes: Settle[] = [];
  for (const [index, job] of jobs.entries()) {
    try {
      const value = await commitAlone(db, job);
      outcomes.push(() => job.resolve(value as never));
    } catch (error) {
      if (unavailability(error) !== null) {
        if (index === 0) throw error;
        // Those that are committed stay so; the others are refused with this one.
        return [...outcomes, ...jobs.slice(index).map((other) => () => other.reject(error))];
      }
      outcomes.push(() => job.reject(error));
    }
  }
  return outcomes;
};

const MAX_TRIES = 5;

const commitAlone = async (db: Kysely<Tables>, job: Job): Promise<unknown> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await db.transaction().execute(async (tx) => job.work(tx));
    } catch (error) {
      if (!mayRunAgain(error) || tries === MAX_TRIES) throw error;
    }
  }
};

/**
 * SQLSTATEs after which the same transaction may succeed: serialization_failure, deadlock_detected.
 */
const AGAIN = ["40001", "40P01"];

const mayRunAgain = (error: unknown): boolean =>
  AGAIN.includes((error as { code?: string }).code ?? "");
