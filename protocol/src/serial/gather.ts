/**
 * When small amounts are sent: the first at once, so that a key waits for nothing; what follows it
 * within a few milliseconds together, and more than a few bytes within some more, so that bulk
 * makes few messages.
 */
import { Alarm } from "../link/alarm.ts";
import type { TimerPort } from "../ports.ts";

/** Each message costs a seal and one of the relay's requests. */
const GATHER_MS = 5;
/** At 1 Mbaud this gathers 2,000 bytes. */
const BULK_MS = 20;
const BULK_BYTES = 256;

export class Gather {
  private readonly timer: TimerPort;
  private readonly send: () => void;
  private sentAt = Number.NEGATIVE_INFINITY;
  /** What there is to send, as far as is known. */
  private bytes = 0;
  private readonly waiting: Alarm;

  constructor(timer: TimerPort, send: () => void) {
    this.timer = timer;
    this.send = send;
    this.waiting = new Alarm(timer);
  }

  /**
   * There are this many bytes to send in all. `isFull`: they fill a message, so there is nothing to
   * wait for.
   */
  add(bytes: number, isFull: boolean): void {
    this.bytes = bytes;
    const gatherMs = bytes < BULK_BYTES ? GATHER_MS : BULK_MS;
    const waitMs = isFull ? 0 : this.sentAt + gatherMs - this.timer.now();
    if (waitMs <= 0) this.now();
    else this.later(waitMs);
  }

  /** Sends after `ms`, unless something is sent before, or more has come to gather. */
  later(ms: number): void {
    if (!this.waiting.isSet) this.waiting.set(ms, () => this.add(this.bytes, false));
  }

  stop(): void {
    this.waiting.clear();
  }

  private now(): void {
    this.stop();
    this.sentAt = this.timer.now();
    this.bytes = 0;
    this.send();
  }
}
