/** Something that may be due later: at most one, which another takes the place of. */
import type { TimerPort } from "../ports.ts";

export class Alarm {
  private readonly timer: TimerPort;
  private handle: unknown = null;

  constructor(timer: TimerPort) {
    this.timer = timer;
  }

  get isSet(): boolean {
    return this.handle !== null;
  }

  /** In place of what was set before. */
  set(ms: number, fn: () => void): void {
    this.clear();
    this.handle = this.timer.set(ms, () => {
      this.handle = null;
      fn();
    });
  }

  clear(): void {
    if (this.handle !== null) this.timer.clear(this.handle);
    this.handle = null;
  }
}
