/**
 * Flow control of one link in one direction: how much may be sent, and how much was granted.
 * Offsets are modulo 2^32; two related offsets are less than 2^31 apart.
 *
 * [portable]
 */

/** `a - b` for offsets, negative where `b` is ahead. */
const distance = (a: number, b: number): number => (a - b) | 0;

export class SendWindow {
  /** Bytes of texts sent so far. */
  sent = 0;
  private limit = 0;

  /** `first`: the window of the peer's HELLO. */
  constructor(first: number) {
    this.limit = first >>> 0;
  }

  /** Whether `length` bytes more may go. */
  hasRoom(length: number): boolean {
    return distance(this.limit, this.sent) >= length;
  }

  /** The offset of a text that goes now. */
  take(length: number): number {
    const offset = this.sent;
    this.sent = (this.sent + length) >>> 0;
    return offset;
  }

  /** A CREDIT of the peer. Late ones do not take back what a newer one gave. */
  allow(limit: number): void {
    if (distance(limit, this.limit) > 0) this.limit = limit >>> 0;
  }
}

export class ReceiveWindow {
  /** Bytes of texts that never came. */
  lost = 0;
  declare private readonly size: number;
  private end = 0;
  /** Taken from the line and not passed on yet. */
  private held = 0;
  private told = 0;

  constructor(size: number) {
    this.size = size;
    this.told = size >>> 0;
  }

  /** A text arrived. False: a duplicate of an older one, or beyond the granted credit. */
  accept(offset: number, length: number): boolean {
    const missing = distance(offset, this.end);
    if (missing < 0 || distance((offset + length) >>> 0, this.told) > 0) return false;
    this.lost += missing;
    this.end = (offset + length) >>> 0;
    this.held += length;
    return true;
  }

  /** It was passed on. */
  release(length: number): void {
    this.held -= length;
  }

  /** The peer has sent so much: what did not come is lost. */
  probe(offset: number): void {
    const missing = distance(offset, this.end);
    if (missing <= 0) return;
    this.lost += missing;
    this.end = offset >>> 0;
  }

  /** The limit to tell: null if the peer has more than half of the window left and did not ask. */
  credit(asked: boolean): number | null {
    const limit = (this.end - this.held + this.size) >>> 0;
    if (!asked && distance(limit, this.told) * 2 < this.size) return null;
    if (distance(limit, this.told) > 0) this.told = limit;
    return this.told;
  }
}
