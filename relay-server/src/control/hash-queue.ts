/**
 * Runs password hashes, a few at a time: each takes 19 MiB and tens of milliseconds of a core that
 * the relay needs for messages. Known callers (an address that this name logged in from, or a user
 * already logged in) go first; unknown ones are ordered by the wrong guesses of their network
 * lately (login-order.ts), so that a distributed flood of guesses delays neither. Of known callers
 * a user's second one waits for the first one of every other user, so that somebody who logs in
 * from many addresses delays only themselves.
 */
import { availableParallelism } from "node:os";

const MAX_WAITING = 32;
/** Room for known callers, and for a stranger who goes before the others. */
const MIN_WAITING = 4;
/** Where hashes take long, only as many wait as are hashed within this. */
const MAX_WAIT_MS = 1500;
/** Node's pool has four threads; one is left to flush the store's changes to the disk. */
const MAX_WORKERS = 3;
/** The weight of the last hash in the average of how long they take. */
const NEWEST_WEIGHT = 0.25;
export const RETRY_AFTER_S = 5;
/**
 * A refusal is delayed this long. Otherwise a caller that retries at once, on a new connection each
 * time, would cost as much as the hashes do.
 */
const REFUSAL_MS = 1000;
/** This many refusals may be delayed, at some 15 KB each; further ones are sent at once. */
const MAX_REFUSALS_DUE = 1024;

/** The rank of a known caller; unknown ones have a higher one. */
export const KNOWN = 0;

/** Too many callers are waiting. */
export class Overloaded extends Error {
  readonly retryAfterS = RETRY_AFTER_S;
}

interface Waiting {
  /** Lower ones go first, equal ones by `before`, then in order of arrival. */
  readonly rank: number;
  /** Among equal ranks: how many of the same user came before it, and are not done. */
  readonly before: number;
  readonly begin: () => void;
  readonly refuse: () => void;
}

export class HashQueue {
  readonly #workers: number;
  readonly #maxWaiting: number;
  readonly #nowMs: () => number;
  #hashMs = 0;
  #working = 0;
  #refusalsDue = 0;
  /** Calls of a known user that wait or run. */
  readonly #ofUser = new Map<string, number>();
  /** In the order in which they will run. */
  readonly #waiting: Waiting[] = [];

  constructor(
    workers = Math.min(MAX_WORKERS, Math.max(1, availableParallelism() - 1)),
    maxWaiting = MAX_WAITING,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#workers = workers;
    this.#maxWaiting = maxWaiting;
    this.#nowMs = nowMs;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Runs `work` when its turn comes. If too many wait, rejects the last one of the highest rank
   * with Overloaded. `userId`: of a known caller.
   */
  async run<T>(rank: number, work: () => Promise<T>, userId?: string): Promise<T> {
    if (rank !== KNOWN || userId === undefined) return this.#run(rank, 0, work);
    const before = this.#ofUser.get(userId) ?? 0;
    this.#ofUser.set(userId, before + 1);
    try {
      return await this.#run(rank, before, work);
    } finally {
      const left = (this.#ofUser.get(userId) as number) - 1;
      if (left > 0) this.#ofUser.set(userId, left);
      else this.#ofUser.delete(userId);
    }
  }

  async #run<T>(rank: number, before: number, work: () => Promise<T>): Promise<T> {
    if (this.#working >= this.#workers) await this.#turn(rank, before);
    else this.#working += 1;
    const begunMs = this.#nowMs();
    try {
      return await work();
    } finally {
      this.#hashMs += NEWEST_WEIGHT * (this.#nowMs() - begunMs - this.#hashMs);
      this.#next();
    }
  }

  #turn(rank: number, before: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const refuse = () => reject(new Overloaded("too many logins wait"));
      const last = this.#waiting.findLastIndex(
        (other) => other.rank < rank || (other.rank === rank && other.before <= before),
      );
      this.#waiting.splice(last + 1, 0, { rank, before, begin: resolve, refuse });
      const mayWait = this.#mayWait();
      while (this.waiting > mayWait) this.#waiting.pop()?.refuse();
    });
  }

  #mayWait(): number {
    const inTime = Math.floor((MAX_WAIT_MS * this.#workers) / Math.max(1, this.#hashMs));
    return Math.min(this.#maxWaiting, Math.max(MIN_WAITING, inTime));
  }

  /** Resolves when somebody who was refused may be told so. */
  async refusal(): Promise<void> {
    if (this.#refusalsDue >= MAX_REFUSALS_DUE) return;
    this.#refusalsDue += 1;
    await new Promise((resolve) => setTimeout(resolve, REFUSAL_MS));
    this.#refusalsDue -= 1;
  }

  /** Passes the place on to the next caller, or frees it. */
  #next(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#working -= 1;
    else next.begin();
  }
}
