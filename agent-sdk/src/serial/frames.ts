/**
 * Frames on a serial line, where bytes get lost, doubled and made up:
 *
 *   00  COBS(type 1 B, body, CRC-32 of both 4 B big-endian)  00
 *
 * Consistent Overhead Byte Stuffing (Cheshire and Baker, 1999) takes every zero out of what is
 * between the zeros, so that a zero is always a border: whatever came before it, the next whole
 * frame is read. A frame arrives as it was sent or not at all; that one is missing is for the
 * layers above to notice.
 *
 * [portable]
 */
import { crc32 } from "@blindrelay/protocol/crypto";

const CRC_BYTES = 4;
const LONGEST_RUN = 254;

/** CRC-32 of IEEE 802.3; a board that has it natively brings its own. */
export type Checksum = (bytes: Uint8Array) => number;

/** Bytes that a frame with a body of `length` takes on the line, at most. */
export const frameBytes = (length: number): number => {
  const inside = length + 1 + CRC_BYTES;
  return inside + Math.floor(inside / LONGEST_RUN) + 3;
};

/** One frame, ready for the line. `type`: 0 to 255. */
export const encodeFrame = (type: number, body: Uint8Array, checksum: Checksum): Uint8Array => {
  const inside = new Uint8Array(body.length + 1 + CRC_BYTES);
  inside[0] = type;
  inside.set(body, 1);
  const end = body.length + 1;
  const crc = checksum(inside.subarray(0, end));
  for (let i = 0; i < CRC_BYTES; i++) inside[end + i] = (crc >>> (24 - 8 * i)) & 255;
  const line = new Uint8Array(frameBytes(body.length));
  // line[0] is the border; each run is led by its length plus one.
  let lead = 1;
  let at = 2;
  for (let i = 0; i < inside.length; i++) {
    const byte = inside[i] as number;
    if (byte !== 0) {
      line[at] = byte;
      at++;
    }
    if (byte === 0 || at - lead > LONGEST_RUN) {
      line[lead] = at - lead;
      lead = at;
      at++;
    }
  }
  line[lead] = at - lead;
  return line.subarray(0, at + 1);
};

/** What COBS made of `inside`, in place; -1 where it is none. Returns the length. */
const unstuff = (bytes: Uint8Array, length: number): number => {
  let from = 0;
  let to = 0;
  while (from < length) {
    const lead = bytes[from] as number;
    if (from + lead > length) return -1;
    for (let i = 1; i < lead; i++) {
      bytes[to] = bytes[from + i] as number;
      to++;
    }
    from += lead;
    if (lead <= LONGEST_RUN && from < length) {
      bytes[to] = 0;
      to++;
    }
  }
  return to;
};

export interface FrameCounters {
  frames: number;
  /** What lay between two zeros and was no frame: noise, a damaged frame, a console's text. */
  garbage: number;
}

/** Finds the frames in what comes off a line, in whatever pieces. */
export class FrameReader {
  declare readonly counters: FrameCounters;
  declare private readonly buffer: Uint8Array;
  declare private readonly checksum: Checksum;
  declare private readonly found: (type: number, body: Uint8Array) => void;
  private length = 0;
  private skipping = false;

  /** `maxBody`: bytes; longer frames are garbage. `found`: the body is lent until it returns. */
  constructor(
    maxBody: number,
    checksum: Checksum,
    found: (type: number, body: Uint8Array) => void,
  ) {
    this.counters = { frames: 0, garbage: 0 };
    this.buffer = new Uint8Array(frameBytes(maxBody));
    this.checksum = checksum;
    this.found = found;
  }

  receive(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i] as number;
      if (byte === 0) this.border();
      else if (this.length < this.buffer.length) {
        this.buffer[this.length] = byte;
        this.length++;
      } else this.skipping = true;
    }
  }

  private border(): void {
    const stuffed = this.length;
    const skipped = this.skipping;
    this.length = 0;
    this.skipping = false;
    if (stuffed === 0) return;
    const length = skipped ? -1 : unstuff(this.buffer, stuffed);
    if (length <= CRC_BYTES || !this.sound(length)) {
      this.counters.garbage++;
      return;
    }
    this.counters.frames++;
    this.found(this.buffer[0] as number, this.buffer.subarray(1, length - CRC_BYTES));
  }

  private sound(length: number): boolean {
    const end = length - CRC_BYTES;
    let crc = 0;
    for (let i = end; i < length; i++) crc = ((crc << 8) | (this.buffer[i] as number)) >>> 0;
    return crc === this.checksum(this.buffer.subarray(0, end));
  }
}

/** The checksum where the board has none of its own. */
export const plainChecksum: Checksum = (bytes) => crc32(bytes);
