/**
 * Keeps SQLite's write-ahead log on the disk from outside of the relay's thread. SQLite would flush
 * it within each commit, and no message would be forwarded until a slow disk has finished.
 */
import fs from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { Checkpoints } from "./checkpoints.ts";
import { type Run, sqliteLost } from "./sqlite-failures.ts";
import { type StoreDamaged, StoreUnavailable, unavailability } from "./unavailable.ts";

/** Some 1,000 to 2,000 pages of the log. */
const WRITES_PER_CHECKPOINT = 256;
/** Pages of the log, 16 MB, after which SQLite makes a checkpoint itself, within a commit. */
export const MAX_PAGES = 4096;
const CHUNK_BYTES = 65_536;
/** From one try to make a failed flush good to the next: each writes the whole log. */
const PAUSE_MS = 1000;

export class WalFlush {
  readonly #database: DatabaseSync;
  /** Of the database. */
  readonly #path: string;
  /** What these paths led to when they were opened; the log's: once it is. */
  readonly #places = new Map<string, string | null>();
  readonly #run: Run;
  readonly #checkpoints: Checkpoints;
  /** Its descriptor; not a FileHandle, which must not be forgotten open. */
  #file: number | null = null;
  #running: Promise<unknown> = Promise.resolve();
  /**
   * A flush may have failed, also in a process before this one: the kernel may call the next one a
   * success without having written.
   */
  #isDoubtful = true;
  #triedAtMs = Number.NEGATIVE_INFINITY;
  /** Why the last try failed. */
  #failure: unknown = null;
  #writes = 0;

  /** `path`: of the database. */
  constructor(database: DatabaseSync, path: string, run: Run) {
    this.#database = database;
    this.#run = run;
    this.#path = path;
    this.#places.set(path, placeOf(path));
    this.#checkpoints = new Checkpoints(path);
  }

  /**
   * Call it before a commit: makes good a flush that failed, and a checkpoint if one is due.
   * Rejects with StoreUnavailable; then nothing may be committed.
   */
  prepare(): Promise<void> {
    return this.#guarded(async () => {
      const lost = this.lost();
      if (lost !== null) throw lost;
      if (this.#isDoubtful) await this.#flushAgain(performance.now());
      if (this.#writes < WRITES_PER_CHECKPOINT) return;
      this.#writes = 0;
      await this.#checkpoints.run();
    });
  }

  /**
   * Resolves when these writes, and all before them, are on the disk. Rejects with StoreUnavailable
   * if they are not; they stay committed all the same.
   */
  flush(writes: number): Promise<void> {
    this.#writes += writes;
    return this.#guarded(async () => {
      this.#isDoubtful = true;
      await sync(this.#log());
      this.#isDoubtful = false;
    });
  }

  /**
   * What is written is lost if the store was moved, removed or replaced meanwhile: SQLite goes on
   * with files that have no name any more, and its checkpoints here meet those that have it now.
   * It notices that only without a write-ahead log. Null: the files are in place.
   */
  lost(): StoreDamaged | null {
    for (const [path, place] of this.#places) {
      const now = placeOf(path);
      if (now === null) continue;
      if (place !== null && now !== place) return sqliteLost(this.#path, path);
      this.#places.set(path, now);
    }
    return null;
  }

  /** Before the database is closed. */
  async close(): Promise<void> {
    await this.#running;
    await this.#checkpoints.close();
    if (this.#file !== null) fs.closeSync(this.#file);
    this.#file = null;
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    const done = work().catch((error) => {
      this.#failure = error;
      throw unavailability(error) ?? new StoreUnavailable(error);
    });
    this.#running = done.catch(() => undefined);
    await done;
  }

  #log(): number {
    if (this.#file === null) {
      const path = `${this.#path}-wal`; // there as long as the database is open
      const place = placeOf(path);
      if (place === "") throw sqliteLost(this.#path, path);
      this.#file = fs.openSync(path, "r+");
      this.#places.set(path, place);
    }
    return this.#file;
  }

  /** Writes the whole log once more, in place, so that the kernel has all of it to flush. */
  async #flushAgain(nowMs: number): Promise<void> {
    if (nowMs - this.#triedAtMs < PAUSE_MS) throw this.#failure;
    this.#triedAtMs = nowMs;
    const log = this.#log();
    const chunk = Buffer.alloc(CHUNK_BYTES);
    // No other process writes to the log meanwhile.
    this.#run(() => this.#database.exec("begin immediate"));
    try {
      let at = 0;
      for (;;) {
        const bytes = fs.readSync(log, chunk, 0, CHUNK_BYTES, at);
        if (bytes === 0) break;
        at += fs.writeSync(log, chunk, 0, bytes, at);
      }
    } finally {
      this.#database.exec("rollback");
    }
    await sync(log);
    this.#isDoubtful = false;
    this.#triedAtMs = Number.NEGATIVE_INFINITY;
  }
}

/** Which file a path leads to; "": none. Null: that cannot be seen now. */
const placeOf = (path: string): string | null => {
  try {
    const found = fs.statSync(path, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? "" : `${found.dev}:${found.ino}`;
  } catch {
    return null;
  }
};

const sync = (file: number): Promise<void> =>
  new Promise((resolve, reject) => {
    fs.fdatasync(file, (error) => (error === null ? resolve() : reject(error)));
  });
