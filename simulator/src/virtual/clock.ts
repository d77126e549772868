/**
 * Virtual time: whole microseconds, and a heap of scheduled events. Events in the same microsecond
 * happen in the order in which they were set; before them come events with a fixed place, so that
 * it does not matter when they were set. Nothing here reads a real clock.
 */

/** A scheduled event. `act` is shared by all events of its kind; what differs is in `a` and `b`. */
export interface Happening {
  /** Null: it was cancelled. */
  act: ((a: never, b: never) => void) | null;
  a: unknown;
  b: unknown;
}

/** An event that may be scheduled later, or not at all. */
export interface Prepared extends Happening {
  readonly atUs: number;
  readonly place: number;
}

/** Fixed places are below this number; other events are numbered from here. */
const FIRST_ORDER = 2 ** 33;
/** Initial capacity of the heap. */
const FIRST_ROOM = 1024;

/** 2026-01-01T00:00:00Z. */
const EPOCH_MS = 1_767_225_600_000;

export class Clock {
  /** Unix time at the start of the world, in milliseconds. */
  epochMs = EPOCH_MS;
  /** Microseconds since the start of the world. */
  nowUs = 0;
  /** Events processed so far. */
  played = 0;
  private order = FIRST_ORDER;
  /**
   * A binary heap in three arrays, the earliest event first: what is compared is contiguous,
   * because looking it up in one object after the other would take most of the time.
   */
  private times = new Float64Array(FIRST_ROOM);
  private places = new Float64Array(FIRST_ROOM);
  private readonly items: Happening[] = [];

  /** Schedules `act(a, b)` at `atUs`, or now if that is in the past. */
  at<A, B>(atUs: number, act: (a: A, b: B) => void, a: A, b: B, place = this.order++): Happening {
    const happening = { act: act as (a: never, b: never) => void, a, b };
    this.push(atUs, place, happening);
    return happening;
  }

  /** The same with a fixed place, to be scheduled by `put`. */
  prepare<A, B>(atUs: number, act: (a: A, b: B) => void, a: A, b: B, place: number): Prepared {
    return { act: act as (a: never, b: never) => void, a, b, atUs, place };
  }

  /** Schedules a prepared event, for now if its time has passed. */
  put(prepared: Prepared): void {
    if (prepared.act !== null) this.push(prepared.atUs, prepared.place, prepared);
  }

  /** Runs `fn` as if it were `atUs`, a moment in the past at which nothing else happened. */
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
   * wait <= now` may differ), and a timer that fires slightly early would be set again and again
   * for the same instant.
   */
  nowMs(): number {
    return Math.floor(this.nowUs / 1000);
  }

  /** Cancels an event; harmless afterwards. */
  cancel(happening: Happening): void {
    happening.act = null;
    happening.a = null;
    happening.b = null;
  }

  /** When the next event is due; null if there is none. */
  nextUs(): number | null {
    for (;;) {
      const first = this.items[0];
      if (first === undefined) return null;
      if (first.act !== null) return this.times[0] as number;
      this.pop();
    }
  }

  /** Whose event is the next one, as far as that is in `a`. */
  next(): unknown {
    return this.items[0]?.a;
  }

  /** Processes the next event. */
  step(): void {
    const atUs = this.times[0] as number;
    const { act, a, b } = this.pop();
    if (act === null) return;
    this.nowUs = atUs;
    this.played += 1;
    act(a as never, b as never);
  }

  private push(dueUs: number, place: number, item: Happening): void {
    const { items } = this;
    const atUs = dueUs > this.nowUs ? Math.ceil(dueUs) : this.nowUs;
    let i = items.length;
    items.push(item);
    if (i === this.times.length) this.grow();
    const { times, places } = this;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = times[parent] as number;
      if (above < atUs || (above === atUs && (places[parent] as number) < place)) break;
      times[i] = above;
      places[i] = places[parent] as number;
      items[i] = items[parent] as Happening;
      i = parent;
    }
    times[i] = atUs;
    places[i] = place;
    items[i] = item;
  }

  private pop(): Happening {
    const { times, places, items } = this;
    const first = items[0] as Happening;
    const item = items.pop() as Happening;
    const { length } = items;
    if (length === 0) return first;
    const atUs = times[length] as number;
    const place = places[length] as number;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= length) break;
      if (child + 1 < length && this.isBefore(child + 1, child)) child += 1;
      const below = times[child] as number;
      if (atUs < below || (atUs === below && place < (places[child] as number))) break;
      times[i] = below;
      places[i] = places[child] as number;
      items[i] = items[child] as Happening;
      i = child;
    }
    times[i] = atUs;
    places[i] = place;
    items[i] = item;
    return first;
  }

  private isBefore(one: number, other: number): boolean {
    const { times, places } = this;
    const a = times[one] as number;
    const b = times[other] as number;
    return a < b || (a === b && (places[one] as number) < (places[other] as number));
  }

  private grow(): void {
    const { times, places } = this;
    this.times = new Float64Array(2 * times.length);
    this.places = new Float64Array(2 * places.length);
    this.times.set(times);
    this.places.set(places);
  }
}

const call = (fn: () => void): void => fn();
