/**
 * Bytes of one direction of a port with their numbers, counted from the opening of the port: what
 * was read or written and is not acknowledged yet. A ring, so that taking a part costs no search.
 */

/** What each side keeps of a direction (section 2, "A serial port outlives its link"). */
export const MAX_KEPT_BYTES = 262_144;
/** What may still come of a port after it was told to pause. */
const ROOM_BYTES = 2 * MAX_KEPT_BYTES;

export class NumberedBytes {
  /** The number of the oldest byte kept. */
  from: number;
  /** The number of the next byte. */
  end: number;
  private ring: Uint8Array | null = null;

  constructor(at = 0) {
    this.from = at;
    this.end = at;
  }

  get size(): number {
    return this.end - this.from;
  }

  /** Appends bytes; the oldest are dropped where there is no room for them. */
  push(bytes: Uint8Array): void {
    this.ring ??= new Uint8Array(ROOM_BYTES);
    const kept = bytes.subarray(Math.max(0, bytes.length - ROOM_BYTES));
    const start = (this.end + bytes.length - kept.length) % ROOM_BYTES;
    const first = kept.subarray(0, ROOM_BYTES - start);
    this.ring.set(first, start);
    this.ring.set(kept.subarray(first.length), 0);
    this.end += bytes.length;
    this.drop(this.end - ROOM_BYTES);
  }

  /** Counts bytes that nobody needs, and everything before them. */
  skip(bytes: number): void {
    this.end += bytes;
    this.from = this.end;
  }

  /**
   * At least one and at most `max` of the bytes kept from number `at`, which is below `end`; valid
   * until the next `push`.
   */
  read(at: number, max: number): Uint8Array {
    if (this.ring === null || at < this.from || at >= this.end) return new Uint8Array(0);
    const start = at % ROOM_BYTES;
    // Where the ring ends, so does the part.
    return this.ring.subarray(start, start + Math.min(max, this.end - at));
  }

  /** A copy of the bytes kept, whose first one has number `at`. */
  renumbered(at: number): NumberedBytes {
    const copy = new NumberedBytes(at);
    for (let n = this.from; n < this.end; ) {
      const part = this.read(n, this.size);
      copy.push(part);
      n += part.length;
    }
    return copy;
  }

  /** Forgets what is from number `at` on; the next byte gets that number. */
  truncate(at: number): void {
    this.end = Math.max(this.from, Math.min(this.end, at));
  }

  /** Forgets what is before number `at`. */
  drop(at: number): void {
    this.from = Math.min(this.end, Math.max(this.from, at));
  }
}
