/**
 * A map of recent entries: at least the last `count` keys, at most twice as many. It consists of
 * two maps, of which the older one is dropped as a whole: to find the oldest key of a single map,
 * an engine would skip all keys deleted before it.
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
