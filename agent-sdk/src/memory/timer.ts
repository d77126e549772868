/** A timer port whose time advances only by `advance`: for tests and virtual time. */
import type { TimerPort } from "../ports.ts";

interface Pending {
  readonly at: number;
  /** Breaks ties: what was set first fires first. */
  readonly order: number;
  /** null once fired or cleared; a cleared entry stays in the heap until its turn. */
  fn: (() => void) | null;
}

/** Cleared entries beyond this many, and beyond those still set, are thrown out of the heap. */
const MAX_CLEARED = 1024;

const before = (a: Pending, b: Pending): boolean =>
  a.at < b.at || (a.at === b.at && a.order < b.order);

export class ManualTimer implements TimerPort {
  private time = 0;
  private order = 0;
  /** A binary heap, soonest first. */
  private heap: Pending[] = [];
  private active = 0;

  now(): number {
    return this.time;
  }

  set(ms: number, fn: () => void): unknown {
    const entry = { at: this.time + Math.max(0, ms), order: this.order++, fn };
    this.active++;
    this.push(entry);
    return entry;
  }

  clear(handle: unknown): void {
    const entry = handle as Pending | null | undefined;
    if (!entry?.fn) return;
    entry.fn = null;
    this.active--;
    if (this.heap.length > 2 * this.active + MAX_CLEARED) {
      this.heap = this.heap.filter(({ fn }) => fn !== null).sort((a, b) => (before(a, b) ? -1 : 1));
    }
  }

  /** When the next timer is due; null while none is set. */
  nextAt(): number | null {
    while (this.heap[0]?.fn === null) this.pop();
    return this.heap[0]?.at ?? null;
  }

  /** How many timers are set. */
  count(): number {
    return this.active;
  }

  /** Advances time by `ms`, firing due timers in order, each at its own time. */
  advance(ms: number): void {
    const end = this.time + ms;
    for (let at = this.nextAt(); at !== null && at <= end; at = this.nextAt()) {
      const entry = this.heap[0] as Pending;
      this.pop();
      this.time = Math.max(this.time, at);
      const { fn } = entry;
      entry.fn = null;
      this.active--;
      fn?.();
    }
    this.time = end;
  }

  private push(entry: Pending): void {
    const { heap } = this;
    let i = heap.length;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!before(entry, heap[parent] as Pending)) break;
      heap[i] = heap[parent] as Pending;
      i = parent;
    }
    heap[i] = entry;
  }

  /** Takes the soonest out. */
  private pop(): void {
    const { heap } = this;
    const last = heap.pop() as Pending;
    if (heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && before(right, heap[child] as Pending)) child++;
      if (!before(heap[child] as Pending, last)) break;
      heap[i] = heap[child] as Pending;
      i = child;
    }
    heap[i] = last;
  }
}
