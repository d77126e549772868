/**
 * Flushes SQLite's write-ahead log to the disk in Node's thread pool. SQLite would do it within
 * each commit, and no message would be forwarded until a slow disk has finished.
 */
import { close, fdatasync, openSync } from "node:fs";
import { promisify } from "node:util";
import { Checkpoints } from "./checkpoints.ts";

const flushFile = promisify(fdatasync);
const closeFile = promisify(close);

const FLUSHES_PER_CHECKPOINT = 256;
/** Pages of the log, 16 MB, that SQLite moves within a commit: after a few very large ones. */
export const MOST_PAGES = 4096;

export class WalFlush {
  readonly #path: string;
  readonly #checkpoints: Checkpoints;
  readonly #empty: () => void;
  #file: number | null = null;
  #running: Promise<void> = Promise.resolve();
  /** A flush failed: the kernel may call the next one a success without having written. */
  #isDoubtful = false;
  #flushes = 0;

  /**
   * `path`: of the database, whose log is beside it. `empty` writes all of the log into the
   * database's file and flushes that, or throws.
   */
  constructor(path: string, empty: () => void) {
    this.#path = `${path}-wal`;
    this.#checkpoints = new Checkpoints(path);
    this.#empty = empty;
  }

  /**
   * Resolves when all that was committed before is on the disk. Rejects with the error of
   * `empty` if it is not; it can be read all the same.
   */
  flush(): Promise<void> {
    this.#running = this.#flush();
    return this.#running;
  }

  /** Before the database is closed. */
  async close(): Promise<void> {
    await this.#running.catch(() => undefined);
    await this.#checkpoints.close();
    if (this.#file !== null) await closeFile(this.#file);
    this.#file = null;
  }

  async #flush(): Promise<void> {
    if (!this.#isDoubtful) {
      try {
        this.#file ??= openSync(this.#path, "r+");
        await flushFile(this.#file);
        await this.#flushed();
        return;
      } catch {
        this.#isDoubtful = true;
      }
    }
    this.#empty();
    this.#isDoubtful = false;
  }

  /** Nothing is committed while this waits, so the log can begin anew. */
  async #flushed(): Promise<void> {
    this.#flushes += 1;
    if (this.#flushes < FLUSHES_PER_CHECKPOINT) return;
    this.#flushes = 0;
    await this.#checkpoints.run();
  }
}
