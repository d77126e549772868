/**
 * Flow control of one link in one direction: how much may be sent, and how much was granted.
 * Offsets are modulo 2^32; two related offsets are less than 2^31 apart.
 *
 * [portable]
 */

/** `a - b` for offsets, negative if `b` is ahead. */
const distance = (a: number, b: number): number => (a - b) | 0;

export class SendWindow {
  /** Bytes of texts sent so far. */
  sent = 0;
  private limit = 0;

  /** `first`: the window in the peer's HELLO. */
  constructor(first: number) {
    this.limit = first >>> 0;
  }

  /** Whether `length` more bytes may be sent. */
  hasRoom(length: number): boolean {
    return distance(this.limit, this.sent) >= length;
  }

  /** The offset of a text that is sent now. */
  take(length: number): number {
    const offset = this.sent;
    this.sent = (this.sent + length) >>> 0;
    return offset;
  }

  /** Handles the peer's CREDIT. A late one does not reduce what a newer one granted. */
  allow(limit: number): void {
    if (distance(limit, this.limit) > 0) this.limit = limit >>> 0;
  }
}

export class ReceiveWindow {
  /** Bytes of texts that never arrived. */
  lost = 0;
  declare private readonly size: number;
  private end = 0;
  /** Received from the line and not passed on yet. */
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

  /** The number of bytes that the peer has sent: what did not arrive is lost. */
  probe(offset: number): void {
    const missing = distance(offset, this.end);
    if (missing <= 0) return;
    this.lost += missing;
    this.end = offset >>> 0;
  }

  /**
   * The limit to announce: null if the peer has more than half of the window left and did not ask.
   */
  credit(asked: boolean): number | null {
    const limit = (this.end - this.held + this.size) >>> 0;
    if (!asked && distance(limit, this.told) * 2 < this.size) return null;
    if (distance(limit, this.told) > 0) this.told = limit;
    return this.told;
  }
}
