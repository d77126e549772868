/**
 * Counts the messages that arrive on one connection, which are all alike. The first one of each
 * read is compared with what was sent, byte by byte; the others are recognized by their length.
 */
import type { Taker } from "./frames.ts";

/** How much of an unexpected message the error quotes. */
const SHOWN_BYTES = 200;

export class Arrivals implements Taker {
  private readonly message: Buffer;
  /** What the server may send in between; null: nothing. */
  private readonly aside: Buffer | null;
  /** The first byte in which the two differ. */
  private readonly differs: number;
  /** Bytes received of the current message, and whether it is the aside. */
  private carried = 0;
  private isAside = false;
  private compared = false;
  private messages = 0;
  private asides = 0;

  constructor(message: Buffer, aside: Buffer | null) {
    this.message = message;
    this.aside = aside;
    this.differs = aside === null ? 0 : aside.findIndex((byte, i) => byte !== message[i]);
  }

  begin(): void {
    this.compared = false;
    this.messages = this.asides = 0;
  }

  /** Throws if the first message of a read is not what was sent. */
  take(bytes: Buffer, from: number, to: number): void {
    let at = from;
    while (at < to) {
      const decides = at + this.differs - this.carried;
      if (this.aside !== null && decides >= at && decides < to) {
        this.isAside = bytes[decides] === this.aside[this.differs];
      }
      const whole = this.isAside ? (this.aside as Buffer) : this.message;
      const carried = Math.min(whole.length, this.carried + to - at);
      const end = at + carried - this.carried;
      if (!this.compared) {
        this.compared = true;
        if (whole.compare(bytes, at, end, this.carried, carried) !== 0) {
          const came = bytes.toString("latin1", at, Math.min(to, at + SHOWN_BYTES));
          throw new Error(`what arrived was not sent: ${JSON.stringify(came)}`);
        }
      }
      at = end;
      this.carried = carried;
      if (carried === whole.length) this.ends();
    }
  }

  private ends(): void {
    if (this.isAside) this.asides += 1;
    else this.messages += 1;
    this.carried = 0;
    this.isAside = false;
  }

  /** Complete messages of this read. */
  get counted(): number {
    return this.messages;
  }

  /** Whether the server has sent the aside, which needs an answer. */
  get asked(): boolean {
    return this.asides > 0;
  }
}
