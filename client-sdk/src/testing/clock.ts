/** Time that tests control, and randomness that a seed repeats. */
import type { Random, TimerPort } from "../ports.ts";

interface Alarm {
  readonly at: number;
  readonly fn: () => void;
}

export class VirtualClock implements TimerPort {
  private time = 0;
  /** Soonest first; those for the same instant in the order of setting. */
  private readonly alarms: Alarm[] = [];

  now(): number {
    return this.time;
  }

  set(ms: number, fn: () => void): unknown {
    const alarm = { at: this.time + Math.max(0, ms), fn };
    this.alarms.splice(this.countUntil(alarm.at), 0, alarm);
    return alarm;
  }

  clear(handle: unknown): void {
    const alarm = handle as Alarm;
    for (let i = this.countUntil(alarm.at) - 1; this.alarms[i]?.at === alarm.at; i--) {
      if (this.alarms[i] === alarm) this.alarms.splice(i, 1);
    }
  }

  /** The number of timers that are set; 0 when everything was released. */
  get pending(): number {
    return this.alarms.length;
  }

  /** Lets `ms` pass; promises settle between two alarms. */
  async run(ms: number): Promise<void> {
    const end = this.time + ms;
    await settled();
    for (let [alarm] = this.alarms; alarm !== undefined && alarm.at <= end; [alarm] = this.alarms) {
      this.alarms.shift();
      this.time = Math.max(this.time, alarm.at);
      alarm.fn();
      await settled();
    }
    this.time = end;
  }

  /** Time passes without alarms, as if the process was suspended; alarms are late. */
  jump(ms: number): void {
    this.time += ms;
  }

  /** The number of alarms due at `at` or before. */
  private countUntil(at: number): number {
    let [low, high] = [0, this.alarms.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.alarms[middle] as Alarm).at <= at) low = middle + 1;
      else high = middle;
    }
    return low;
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
