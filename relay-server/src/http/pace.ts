/**
 * How many requests begin in one turn of the event loop: as many as are quickly done with, so
 * that writes that come together share a sync of the disk, and one where it takes long. Work on
 * the store blocks the relay's thread; whatever else is due, messages above all, comes between
 * two turns, however many requests have arrived. A long request pauses in the same way.
 */

/** After this long in one turn no further request begins in it. */
const TURN_MS = 1;
const MOST_IN_ONE_TURN = 16;

export class Pace {
  readonly #waiting: (() => void)[] = [];
  /** Immediates under way, each for one request. */
  #steps = 0;
  #turnSinceMs: number | null = null;
  readonly #first: () => void;

  /** `first` is called before each request that begins: messages that wait to be written. */
  constructor(first: () => void = () => undefined) {
    this.#first = first;
  }

  /** Resolves when the request may begin, in the order of the calls. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    while (this.#steps < Math.min(MOST_IN_ONE_TURN, this.#waiting.length)) {
      this.#steps += 1;
      setImmediate(this.#step);
    }
  }

  /** What a request does at once is done before the next step of the same turn. */
  readonly #step = (): void => {
    this.#steps -= 1;
    const nowMs = performance.now();
    if (this.#turnSinceMs === null) {
      this.#turnSinceMs = nowMs;
      setImmediate(this.#endTurn); // before the steps that wait for the next turn
    }
    if (nowMs - this.#turnSinceMs <= TURN_MS) {
      this.#first();
      this.#waiting.shift()?.();
    }
    this.#schedule();
  };

  readonly #endTurn = (): void => {
    this.#turnSinceMs = null;
  };
}
