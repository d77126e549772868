/**
 * Lets work with the same key pass one at a time. Guesses sent all at once would otherwise be
 * checked before the first of them has been counted.
 */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` after everything that came earlier under `key`, and answers as it does. */
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
