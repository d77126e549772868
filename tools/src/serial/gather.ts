/**
 * When small amounts are sent: the first at once, so that a key waits for nothing; what follows it
 * within a few milliseconds together, so that bulk makes few messages.
 */
import type { TimerPort } from "@blindrelay/agent-sdk/ports";

/** Each message costs a seal and one of the relay's requests; at 1 Mbaud this gathers 500 bytes. */
const GATHER_MS = 5;

export class Gather {
  private readonly timer: TimerPort;
  private readonly send: () => void;
  private sentAt = Number.NEGATIVE_INFINITY;
  private waiting: unknown = null;

  constructor(timer: TimerPort, send: () => void) {
    this.timer = timer;
    this.send = send;
  }

  /** There is something to send. `isFull`: it fills a message, so there is nothing to wait for. */
  add(isFull: boolean): void {
    const waitMs = isFull ? 0 : this.sentAt + GATHER_MS - this.timer.now();
    if (waitMs <= 0) this.now();
    else this.later(waitMs);
  }

  /** Sends after `ms`, unless something is sent before. */
  later(ms: number): void {
    this.waiting ??= this.timer.set(ms, () => {
      this.waiting = null;
      this.now();
    });
  }

  stop(): void {
    if (this.waiting !== null) this.timer.clear(this.waiting);
    this.waiting = null;
  }

  private now(): void {
    this.stop();
    this.sentAt = this.timer.now();
    this.send();
  }
}
