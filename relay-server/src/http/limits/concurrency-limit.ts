/**
 * Limits how many requests of one user run at a time: the user's others wait, other users' do not.
 */
import type { Pace } from "./pace.ts";

interface Line {
  working: number;
  readonly waiting: (() => void)[];
}

export class ConcurrencyLimit {
  readonly #atOnce: number;
  readonly #maxWaiting: number;
  readonly #pace: Pace;
  readonly #lines = new Map<string, Line>();

  constructor(atOnce: number, maxWaiting: number, pace: Pace) {
    this.#pace = pace;
    this.#atOnce = atOnce;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Resolves when the request may run, to the function that ends it, or to null if too many wait.
   */
  async take(key: string): Promise<(() => void) | null> {
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = { working: 0, waiting: [] };
      this.#lines.set(key, line);
    }
    if (line.working < this.#atOnce) {
      line.working += 1;
    } else {
      if (line.waiting.length >= this.#maxWaiting) return null;
      const { waiting } = line;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    await this.#pace.goOn(key);
    const taken = line;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.#end(key, taken);
    };
  }

  #end(key: string, line: Line): void {
    const next = line.waiting.shift();
    if (next !== undefined) {
      next(); // passes the place on
      return;
    }
    line.working -= 1;
    if (line.working === 0) this.#lines.delete(key);
  }

  /** Users with a request in progress. */
  get size(): number {
    return this.#lines.size;
  }
}
