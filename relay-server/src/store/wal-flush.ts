/**
 * Flushes SQLite's write-ahead log to the disk in Node's thread pool. SQLite would do it within each
 * commit, and no message would be forwarded until a slow disk has finished.
 */
import { close, fdatasync, openSync } from "node:fs";
import { promisify } from "node:util";

const flushFile = promisify(fdatasync);
const closeFile = promisify(close);

export class WalFlush {
  readonly #path: string;
  readonly #empty: () => void;
  #file: number | null = null;
  #running: Promise<void> = Promise.resolve();
  /** A flush failed: the kernel may call the next one a success without having written. */
  #isDoubtful = false;

  /**
   * `path`: of the log. `empty` writes all of it into the database's file and flushes that, or
   * throws.
   */
  constructor(path: string, empty: () => void) {
    this.#path = path;
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

  /** After the database was closed. */
  async close(): Promise<void> {
    await this.#running.catch(() => undefined);
    if (this.#file !== null) await closeFile(this.#file);
    this.#file = null;
  }

  async #flush(): Promise<void> {
    if (!this.#isDoubtful) {
      try {
        this.#file ??= openSync(this.#path, "r+");
        await flushFile(this.#file);
        return;
      } catch {
        this.#isDoubtful = true;
      }
    }
    this.#empty();
    this.#isDoubtful = false;
  }
}
