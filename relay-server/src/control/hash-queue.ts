/**
 * Password hashes, a few at a time: each takes 19 MiB and tens of milliseconds of a core that the
 * relay needs for messages. Known callers (an address that this name logged in from, or
 * a user already logged in) go first, so that a distributed flood of guesses does not delay them.
 */
import { availableParallelism } from "node:os";

/** About two seconds of work on one core. */
const MAX_WAITING = 48;
export const RETRY_AFTER_S = 5;

/** Too many wait already. */
export class Overloaded extends Error {
  readonly retryAfterS = RETRY_AFTER_S;
}

interface Waiting {
  readonly begin: () => void;
  readonly refuse: () => void;
}

export class HashQueue {
  readonly #workers: number;
  readonly #maxWaiting: number;
  #working = 0;
  readonly #known: Waiting[] = [];
  readonly #unknown: Waiting[] = [];

  constructor(workers = Math.max(1, availableParallelism() - 1), maxWaiting = MAX_WAITING) {
    this.#workers = workers;
    this.#maxWaiting = maxWaiting;
  }

  get waiting(): number {
    return this.#known.length + this.#unknown.length;
  }

  /**
   * Runs `work` when its turn comes. Rejects with Overloaded where too many wait; a known caller
   * replaces the last that is not.
   */
  async run<T>(known: boolean, work: () => Promise<T>): Promise<T> {
    if (this.#working >= this.#workers) await this.#turn(known);
    else this.#working += 1;
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #turn(known: boolean): Promise<void> {
    if (this.waiting >= this.#maxWaiting) {
      const last = known ? this.#unknown.pop() : undefined;
      if (last === undefined) return Promise.reject(new Overloaded("too many logins wait"));
      last.refuse();
    }
    return new Promise((resolve, reject) => {
      (known ? this.#known : this.#unknown).push({
        begin: resolve,
        refuse: () => reject(new Overloaded("too many logins wait")),
      });
    });
  }

  /** Hands the place on, or gives it back. */
  #next(): void {
    const next = this.#known.shift() ?? this.#unknown.shift();
    if (next === undefined) this.#working -= 1;
    else next.begin();
  }
}
