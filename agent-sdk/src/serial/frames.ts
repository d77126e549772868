/**
 * Frames on a serial line that may lose, double and invent bytes:
 *
 *   00  COBS(type 1 B, body, CRC-32 of both 4 B big-endian)  00
 *
 * Consistent Overhead Byte Stuffing (Cheshire and Baker, 1999) removes every zero between the
 * borders, so that a zero is always a border: whatever came before it, the next complete frame is
 * read. A frame arrives as it was sent or not at all; the layers above must detect missing frames.
 *
 * [portable]
 */
import { crc32 } from "@blindrelay/protocol/crypto";

const CRC_BYTES = 4;
const LONGEST_RUN = 254;

/** CRC-32 of IEEE 802.3; a board with a native one passes that. */
export type Checksum = (bytes: Uint8Array) => number;

/** The most bytes that a frame with a body of `length` takes on the line. */
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
  // line[0] is the border. By runs, because a board's own loops are slower than the line.
  let from = 0;
  let to = 1;
  for (;;) {
    const zero = inside.indexOf(0, from);
    const run = Math.min((zero < 0 ? inside.length : zero) - from, LONGEST_RUN);
    line[to] = run + 1;
    line.set(inside.subarray(from, from + run), to + 1);
    from += run;
    to += run + 1;
    if (run === LONGEST_RUN) continue;
    if (from === inside.length) return line.subarray(0, to + 1);
    from++; // the zero that the next block's length stands for
  }
};

/** Decodes COBS in place. Returns the length, or -1 if it is not COBS. */
const unstuff = (bytes: Uint8Array, length: number): number => {
  let from = 0;
  let to = 0;
  while (from < length) {
    const lead = bytes[from] as number;
    if (lead === 0 || from + lead > length) return -1;
    bytes.set(bytes.subarray(from + 1, from + lead), to);
    from += lead;
    to += lead - 1;
    if (lead <= LONGEST_RUN && from < length) {
      bytes[to] = 0;
      to++;
    }
  }
  return to;
};

/** Type and body of what was between two zeros, decoded in place; null if it is not a frame. */
export const decodeFrame = (stuffed: Uint8Array, checksum: Checksum): Uint8Array | null => {
  const end = unstuff(stuffed, stuffed.length) - CRC_BYTES;
  if (end < 1) return null;
  let crc = 0;
  for (let i = 0; i < CRC_BYTES; i++) crc = ((crc << 8) | (stuffed[end + i] as number)) >>> 0;
  const frame = stuffed.subarray(0, end);
  return crc === checksum(frame) ? frame : null;
};

/** The checksum for boards that have none of their own. */
export const plainChecksum: Checksum = (bytes) => crc32(bytes);
