/**
 * Runs work with the same key one at a time. Otherwise guesses sent all at once would be checked
 * before the first of them is counted.
 */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` after everything that came earlier under `key`, and returns its result. */
  pass<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work, work);
    const done = turn
      .catch(() => undefined)
      .then(() => {
        if (this.#last.get(key) === done) this.#last.delete(key);
      });
    this.#last.set(key, done);
    return turn;
  }
}
