/**
 * Flow control of one link in one direction: how much may be sent, and how much was granted.
 * Offsets are modulo 2^32; two related offsets are less than 2^31 apart. A window may be smaller
 * than the longest text, where it is a board's input buffer: a text may always be sent when nothing
 * else is out, because a board that is idle reads while the text arrives.
 *
 * [portable]
 */

/** `a - b` for offsets, negative if `b` is ahead. */
const distance = (a: number, b: number): number => (a - b) | 0;

export class SendWindow {
  /** Bytes of texts sent so far. */
  sent = 0;
  declare private readonly size: number;
  private limit = 0;

  /** `size`: the window in the peer's HELLO. */
  constructor(size: number) {
    this.size = size;
    this.limit = size >>> 0;
  }

  /** Whether a text of `length` bytes may be sent. */
  hasRoom(length: number): boolean {
    const left = distance(this.limit, this.sent);
    return left >= length || left === this.size;
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
  declare private readonly longest: number;
  private end = 0;
  /** Received from the line and not passed on yet. */
  private held = 0;
  private told = 0;

  /** `longest`: bytes of the longest text. */
  constructor(size: number, longest: number) {
    this.size = size;
    this.longest = longest;
    this.told = size >>> 0;
  }

  /** A text arrived. False: a duplicate of an older one, or beyond the granted credit. */
  accept(offset: number, length: number): boolean {
    const missing = distance(offset, this.end);
    const beyond = distance((offset + length) >>> 0, this.told) > 0;
    if (missing < 0 || (beyond && this.held > 0)) return false;
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
   * The limit to announce: null if the peer may send any text without it, or nothing has changed,
   * and it did not ask.
   */
  credit(asked: boolean): number | null {
    const limit = (this.end - this.held + this.size) >>> 0;
    const more = distance(limit, this.told);
    if (!asked && (more <= 0 || distance(this.told, this.end) >= this.longest)) return null;
    if (more > 0) this.told = limit;
    return this.told;
  }
}
