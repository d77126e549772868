/**
 * Group commit: work that arrives in one turn of the event loop shares one transaction, and so one
 * flush of the disk. A fleet that comes back at once asks for a session each; flushed one by one,
 * 5,000 of them held the loop of a slow disk for a quarter of a minute.
 */
import { type Kysely, sql } from "kysely";
import type { Tables } from "./tables.ts";

/** Runs work in a transaction; its promise settles once the result is on the disk, or undone. */
export type Write = <T>(work: (tx: Kysely<Tables>) => Promise<T>) => Promise<T>;

/** Bounds how long a transaction grows while more arrives. */
const MAX_TOGETHER = 256;

interface Job {
  readonly work: (tx: Kysely<Tables>) => Promise<unknown>;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** A Write over an engine with one connection. Work that throws undoes its own changes only. */
export const groupCommit = (db: Kysely<Tables>): Write => {
  const waiting: Job[] = [];
  let running = false;
  const run = async (): Promise<void> => {
    running = true;
    while (waiting.length > 0) {
      await nextTurn(); // node:sqlite never lets the loop turn, so nothing else would gather
      await commitTogether(db, waiting.splice(0, MAX_TOGETHER));
    }
    running = false;
  };
  return (work) =>
    new Promise((resolve, reject) => {
      waiting.push({ work, resolve, reject });
      if (!running) void run();
    });
};

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const commitTogether = async (db: Kysely<Tables>, jobs: readonly Job[]): Promise<void> => {
  const outcomes: (() => void)[] = [];
  try {
    await db.transaction().execute(async (tx) => {
      for (const job of jobs) outcomes.push(await attempt(tx, job));
    });
  } catch (error) {
    for (const job of jobs) job.reject(error);
    return;
  }
  for (const tell of outcomes) tell();
};

/** Does one job between savepoints; answers what to tell its owner after the commit. */
const attempt = async (tx: Kysely<Tables>, job: Job): Promise<() => void> => {
  await sql`savepoint job`.execute(tx);
  try {
    const value = await job.work(tx);
    await sql`release savepoint job`.execute(tx);
    return () => job.resolve(value as never);
  } catch (error) {
    await sql`rollback to savepoint job`.execute(tx);
    await sql`release savepoint job`.execute(tx);
    return () => job.reject(error);
  }
};
