/**
 * A bounded queue that serves its keys in turn, one item each: a key with many items waits only for
 * its own, and loses items first if the queue is full.
 */
export class FairQueue<T> {
  readonly #max: number;
  /** Waiting items by key, oldest first; the key that is served next comes first. */
  readonly #lines = new Map<string, T[]>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Adds an item. If there is no room, one is removed and returned: the newest of the key with the
   * most, or the new item if no key has more than its own.
   */
  push(key: string, item: T): T | null {
    const line = this.#lines.get(key);
    if (line === undefined) this.#lines.set(key, [item]);
    else line.push(item);
    this.#size += 1;
    return this.#size > this.#max ? this.#dropFromLongest(key) : null;
  }

  shift(): T | undefined {
    for (const [key, line] of this.#lines) {
      this.#lines.delete(key);
      const item = line.shift();
      if (line.length > 0) this.#lines.set(key, line); // behind the others
      this.#size -= 1;
      return item;
    }
    return undefined;
  }

  #dropFromLongest(key: string): T {
    let longest = [key, this.#lines.get(key) as T[]] as const;
    for (const entry of this.#lines) {
      if (entry[1].length > longest[1].length) longest = entry;
    }
    const dropped = longest[1].pop() as T;
    if (longest[1].length === 0) this.#lines.delete(longest[0]);
    this.#size -= 1;
    return dropped;
  }
}
