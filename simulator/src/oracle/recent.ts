/**
 * A map that remembers what was set lately: at least the last `count` keys, at most twice as many.
 * Two maps, of which the older one is dropped whole: to find the oldest key of one map, an engine
 * passes by all that were deleted in front of it.
 */
export class Recent<Value> {
  private readonly count: number;
  private young = new Map<string, Value>();
  private old = new Map<string, Value>();

  constructor(count: number) {
    this.count = count;
  }

  get(key: string): Value | undefined {
    return this.young.get(key) ?? this.old.get(key);
  }

  set(key: string, value: Value): void {
    this.young.set(key, value);
    if (this.young.size < this.count) return;
    this.old = this.young;
    this.young = new Map();
  }

  delete(key: string): void {
    this.young.delete(key);
    this.old.delete(key);
  }
}
