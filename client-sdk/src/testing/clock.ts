/** Time that tests move, and randomness that a seed repeats. */
import type { Random, TimerPort } from "../ports.ts";

interface Alarm {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
}

export class VirtualClock implements TimerPort {
  private time = 0;
  private order = 0;
  private readonly alarms = new Map<number, Alarm>();

  now(): number {
    return this.time;
  }

  set(ms: number, fn: () => void): unknown {
    const order = this.order++;
    this.alarms.set(order, { at: this.time + Math.max(0, ms), order, fn });
    return order;
  }

  clear(handle: unknown): void {
    this.alarms.delete(handle as number);
  }

  /** How many timers are set; 0 when everything has let go. */
  get pending(): number {
    return this.alarms.size;
  }

  /** Lets `ms` pass; promises settle between two alarms. */
  async run(ms: number): Promise<void> {
    const end = this.time + ms;
    await settled();
    for (let alarm = this.next(end); alarm !== null; alarm = this.next(end)) {
      this.alarms.delete(alarm.order);
      this.time = Math.max(this.time, alarm.at);
      alarm.fn();
      await settled();
    }
    this.time = end;
  }

  /** Time passes unnoticed, as while a process is held up; alarms come late. */
  jump(ms: number): void {
    this.time += ms;
  }

  private next(end: number): Alarm | null {
    let first: Alarm | null = null;
    for (const alarm of this.alarms.values()) {
      if (alarm.at <= end && (first === null || alarm.at < first.at)) first = alarm;
    }
    return first;
  }
}

/** Enough turns of the microtask queue for an `await` of an `await`. */
const settled = async (): Promise<void> => {
  for (let i = 0; i < 4; i++) await Promise.resolve();
};

/** xorshift32: the same bytes for the same seed. */
export const seededRandom = (seed: number): Random => {
  let state = seed | 0 || 1;
  const byte = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 8) & 255;
  };
  return (length) => Uint8Array.from({ length }, byte);
};
