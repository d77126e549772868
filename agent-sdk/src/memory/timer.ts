/** A timer port whose time moves only when told to: for tests and virtual time. */
import type { TimerPort } from "../ports.ts";

interface Pending {
  readonly at: number;
  /** Breaks ties: what was set first fires first. */
  readonly order: number;
  readonly fn: () => void;
}

export class ManualTimer implements TimerPort {
  private time = 0;
  private order = 0;
  private readonly pending = new Set<Pending>();

  now(): number {
    return this.time;
  }

  set(ms: number, fn: () => void): unknown {
    const entry = { at: this.time + Math.max(0, ms), order: this.order++, fn };
    this.pending.add(entry);
    return entry;
  }

  clear(handle: unknown): void {
    this.pending.delete(handle as Pending);
  }

  /** When the next timer is due; null while none is set. */
  nextAt(): number | null {
    return this.next()?.at ?? null;
  }

  /** How many timers are set. */
  count(): number {
    return this.pending.size;
  }

  /** Moves time by `ms`, firing what falls due on the way, in order, each at its own time. */
  advance(ms: number): void {
    const end = this.time + ms;
    for (let entry = this.next(); entry !== undefined && entry.at <= end; entry = this.next()) {
      this.pending.delete(entry);
      this.time = Math.max(this.time, entry.at);
      entry.fn();
    }
    this.time = end;
  }

  private next(): Pending | undefined {
    let first: Pending | undefined;
    for (const entry of this.pending) {
      if (
        first === undefined ||
        entry.at < first.at ||
        (entry.at === first.at && entry.order < first.order)
      ) {
        first = entry;
      }
    }
    return first;
  }
}
