/** The listeners for one kind of event. One that throws affects neither the others nor the core. */
export class Listeners<Args extends readonly unknown[]> {
  private readonly functions = new Set<(...args: Args) => void>();
  private readonly onThrow: (cause: unknown) => void;

  constructor(onThrow: (cause: unknown) => void) {
    this.onThrow = onThrow;
  }

  get size(): number {
    return this.functions.size;
  }

  /**
   * `fn` first receives what `missed` returns, in a microtask, and hears nothing before: that is in
   * it. Returns a function that removes it.
   */
  add(fn: (...args: Args) => void, missed?: () => readonly Args[]): () => void {
    // A separate wrapper, so that a function that was added twice is removed once at a time.
    const own = (...args: Args) => fn(...args);
    let isRemoved = false;
    const begin = (): void => {
      if (isRemoved) return;
      this.functions.add(own);
      for (const args of missed?.() ?? []) if (!isRemoved) this.run(own, args);
    };
    if (missed === undefined) begin();
    else queueMicrotask(begin);
    return () => {
      isRemoved = true;
      this.functions.delete(own);
    };
  }

  emit(...args: Args): void {
    // A set's iteration would reach what is added meanwhile: a listener may add one each time.
    for (const fn of [...this.functions]) if (this.functions.has(fn)) this.run(fn, args);
  }

  private run(fn: (...args: Args) => void, args: Args): void {
    try {
      fn(...args);
    } catch (cause) {
      this.onThrow(cause);
    }
  }
}
