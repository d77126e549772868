/** Items in groups; finds the largest group without looking at the others. */
export class BySize<T> {
  readonly #groups = new Map<string, Set<T>>();
  /** The groups of each size, at the index of that size. */
  readonly #sized: Set<string>[] = [];

  add(group: string, item: T): void {
    const items = this.#groups.get(group) ?? new Set();
    this.#groups.set(group, items);
    this.#move(group, items.size, items.add(item).size);
  }

  delete(group: string, item: T): void {
    const items = this.#groups.get(group);
    if (items?.delete(item) !== true) return;
    this.#move(group, items.size + 1, items.size);
    if (items.size === 0) this.#groups.delete(group);
  }

  /** Of groups of the same size, the one that has had it for longest. */
  oldestOfLargest(): T | undefined {
    const [largest = ""] = this.#sized.at(-1) ?? [];
    const [oldest] = this.#groups.get(largest) ?? [];
    return oldest;
  }

  /** Sizes change by one, so at most one index is added or becomes empty at the end. */
  #move(group: string, from: number, to: number): void {
    this.#sized[from]?.delete(group);
    if (to > 0) {
      this.#sized[to] ??= new Set();
      this.#sized[to].add(group);
    }
    while (this.#sized.length > 0 && (this.#sized.at(-1)?.size ?? 0) === 0) this.#sized.pop();
  }
}
