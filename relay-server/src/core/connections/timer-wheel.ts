/**
 * A timer wheel: one deadline per item, without a timer per item. Setting and removing cost the
 * same for ten connections and for ten thousand, and a tick visits only the items of its own slot.
 */
import { TICK_MS } from "../limits/limits.ts";

const SLOTS = 512; // 51.2 s per round; a later deadline just stays in its slot for another round

/** An item of the wheel. Only the wheel writes these fields. */
export interface Waiting {
  /** Null while the item has no deadline. */
  wakeAt: number | null;
  wakeSlot: number;
  /** Its place in the slot. */
  wakePlace: number;
}

export class TimerWheel<Item extends Waiting> {
  /** Arrays: sets would make up a quarter of the cost of pinging a large, idle fleet. */
  readonly #slots: Item[][] = Array.from({ length: SLOTS }, () => []);
  #lastTick: number;

  constructor(now: number) {
    this.#lastTick = Math.floor(now / TICK_MS);
  }

  /**
   * Sets or moves an item's deadline. The item is visited then or up to one tick later, never
   * earlier.
   */
  set(item: Item, at: number): void {
    this.remove(item);
    const tick = Math.max(Math.ceil(at / TICK_MS), this.#lastTick + 1);
    item.wakeAt = at;
    item.wakeSlot = tick % SLOTS;
    const slot = this.#slots[item.wakeSlot]!;
    item.wakePlace = slot.length;
    slot.push(item);
  }

  remove(item: Item): void {
    if (item.wakeAt === null) return;
    item.wakeAt = null;
    const slot = this.#slots[item.wakeSlot]!;
    const last = slot.pop()!;
    if (last === item) return;
    slot[item.wakePlace] = last;
    last.wakePlace = item.wakePlace;
  }

  /** Visits each due item once; a visit may set the item again. */
  tick(now: number, visit: (item: Item) => void): void {
    const tick = Math.floor(now / TICK_MS);
    const first = Math.max(this.#lastTick + 1, tick - SLOTS + 1);
    const due: Item[] = [];
    for (let t = first; t <= tick; t++) {
      for (const item of this.#slots[t % SLOTS]!) {
        if ((item.wakeAt as number) <= now) {
          due.push(item);
        }
      }
    }
    this.#lastTick = Math.max(this.#lastTick, tick);
    for (const item of due) {
      // An earlier visit may have removed or moved it.
      if (item.wakeAt !== null && item.wakeAt <= now) {
        this.remove(item);
        visit(item);
      }
    }
  }
}
