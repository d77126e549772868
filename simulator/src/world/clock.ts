/**
 * Virtual time: whole microseconds, and a heap of scheduled events. What falls on the same
 * microsecond happens in the order in which it was set; first come events with a place of their
 * own, so that it does not matter when they were set. Nothing here reads a real clock.
 */

/**
 * Something that will happen. `act` is shared by all events of its sort; what differs is in `a` and
 * `b`.
 */
export interface Happening {
  atUs: number;
  readonly order: number;
  /** null: it was called off. */
  act: ((a: never, b: never) => void) | null;
  a: unknown;
  b: unknown;
}

/** Places of events are below; the rest is numbered from here. */
const FIRST_ORDER = 2 ** 33;

export class Clock {
  /** Microseconds since the start of the world. */
  nowUs = 0;
  /** Events played so far. */
  played = 0;
  private order = FIRST_ORDER;
  private readonly heap: Happening[] = [];

  /** Lets `act(a, b)` happen at `atUs`, or now where that is past. */
  at<A, B>(atUs: number, act: (a: A, b: B) => void, a: A, b: B, place = this.order++): Happening {
    const happening = this.make(atUs, act, a, b, place);
    this.push(happening);
    return happening;
  }

  /** The same, for `put` to schedule it later. */
  make<A, B>(atUs: number, act: (a: A, b: B) => void, a: A, b: B, place = this.order++): Happening {
    return {
      atUs: atUs > this.nowUs ? Math.ceil(atUs) : this.nowUs,
      order: place,
      act: act as (a: never, b: never) => void,
      a,
      b,
    };
  }

  /** Schedules what `make` returned, for now where its time is past. */
  put(happening: Happening): void {
    if (happening.act === null) return;
    if (happening.atUs < this.nowUs) happening.atUs = this.nowUs;
    this.push(happening);
  }

  /** Runs `fn` as if it were `atUs`, a moment of the past at which nothing else happened. */
  past(atUs: number, fn: () => void): void {
    const { nowUs } = this;
    this.nowUs = atUs;
    fn();
    this.nowUs = nowUs;
  }

  after(ms: number, fn: () => void): Happening {
    return this.at(this.dueUs(ms), call, fn, null);
  }

  dueUs(ms: number): number {
    return this.nowUs + ms * 1000;
  }

  /**
   * Whole milliseconds, for ports: fractions would not add up (`now - since >= wait` and `since +
   * wait <= now` may differ), and a timer that came a hair too early would be set again and again
   * for the same instant.
   */
  nowMs(): number {
    return Math.floor(this.nowUs / 1000);
  }

  /** Calls it off; harmless afterwards. */
  cancel(happening: Happening): void {
    happening.act = null;
    happening.a = null;
    happening.b = null;
  }

  /** When the next event is due; null where there is none. */
  nextUs(): number | null {
    for (;;) {
      const first = this.heap[0];
      if (first === undefined) return null;
      if (first.act !== null) return first.atUs;
      this.pop();
    }
  }

  /** Plays the next event. */
  step(): void {
    const { atUs, act, a, b } = this.pop();
    if (act === null) return;
    this.nowUs = atUs;
    this.played += 1;
    act(a as never, b as never);
  }

  get pending(): number {
    return this.heap.length;
  }

  private push(item: Happening): void {
    const { heap } = this;
    let i = heap.length;
    heap.push(item);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = heap[parent] as Happening;
      if (isBefore(above, item)) break;
      heap[i] = above;
      i = parent;
    }
    heap[i] = item;
  }

  private pop(): Happening {
    const { heap } = this;
    const first = heap[0] as Happening;
    const last = heap.pop() as Happening;
    const { length } = heap;
    if (length === 0) return first;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= length) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, heap[child] as Happening)) child += 1;
      const below = heap[child] as Happening;
      if (isBefore(last, below)) break;
      heap[i] = below;
      i = child;
    }
    heap[i] = last;
    return first;
  }
}

const isBefore = (a: Happening, b: Happening): boolean =>
  a.atUs < b.atUs || (a.atUs === b.atUs && a.order < b.order);

const call = (fn: () => void): void => fn();
