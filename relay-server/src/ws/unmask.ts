/**
 * Unmasking (RFC 6455 section 5.3) in place, in JavaScript: for messages of the usual size a call
 * into native code costs more than the work. The same pass determines whether the text is printable
 * ASCII, which its reader would otherwise need another pass for.
 */
import { endianness } from "node:os";

/** From this length words are faster: the view that they need costs about as much as 250 bytes. */
const WORDS_FROM = 256;
const LITTLE_ENDIAN = endianness() === "LE";
const SPACES = 0x20202020;

/** 1 for bytes that are not printable: control characters, DEL, and everything beyond ASCII. */
const NOT_PRINTABLE = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte > 0x7e ? 1 : 0,
);

/**
 * Unmasks `bytes` from `from` to before `to` with the four bytes at `maskAt`. Returns whether the
 * result is printable ASCII. In words a DEL counts as printable: JSON accepts it.
 */
export const unmask = (bytes: Buffer, from: number, to: number, maskAt: number): boolean => {
  const mask = bytes.readUInt32LE(maskAt);
  return !LITTLE_ENDIAN || to - from < WORDS_FROM
    ? unmaskBytes(bytes, from, to, mask)
    : unmaskWords(bytes, from, to, mask);
};

/** `mask`: its first byte is the lowest. */
const unmaskBytes = (bytes: Buffer, from: number, to: number, mask: number): boolean => {
  const m0 = mask & 0xff;
  const m1 = (mask >>> 8) & 0xff;
  const m2 = (mask >>> 16) & 0xff;
  const m3 = mask >>> 24;
  let notPrintable = 0;
  let at = from;
  // Four at a time, because each uses its own byte of the mask.
  for (const last = to - 3; at < last; at += 4) {
    const b0 = (bytes[at] as number) ^ m0;
    const b1 = (bytes[at + 1] as number) ^ m1;
    const b2 = (bytes[at + 2] as number) ^ m2;
    const b3 = (bytes[at + 3] as number) ^ m3;
    bytes[at] = b0;
    bytes[at + 1] = b1;
    bytes[at + 2] = b2;
    bytes[at + 3] = b3;
    notPrintable |=
      (NOT_PRINTABLE[b0] as number) |
      (NOT_PRINTABLE[b1] as number) |
      (NOT_PRINTABLE[b2] as number) |
      (NOT_PRINTABLE[b3] as number);
  }
  for (let rest = mask; at < to; at += 1, rest >>>= 8) {
    const byte = (bytes[at] as number) ^ (rest & 0xff);
    bytes[at] = byte;
    notPrintable |= NOT_PRINTABLE[byte] as number;
  }
  return notPrintable === 0;
};

/**
 * Bytes up to a word boundary, then words as far as possible, then bytes again. For little-endian
 * hosts only: words have the host's byte order, the mask has its first byte lowest.
 */
const unmaskWords = (bytes: Buffer, from: number, to: number, mask: number): boolean => {
  const before = -(bytes.byteOffset + from) & 3;
  const start = from + before;
  const turned = before === 0 ? mask : (mask >>> (8 * before)) | (mask << (32 - 8 * before));
  const count = (to - start) >> 2;
  const words = wordsOf(bytes.buffer);
  const first = (bytes.byteOffset + start) >> 2;
  // Bit 7 of each byte: set if it was above 0x7f, or if any was below 0x20 and so borrows.
  let notPrintable = 0;
  let at = first;
  for (const last = first + count - 3; at < last; at += 4) {
    const w0 = (words[at] as number) ^ turned;
    const w1 = (words[at + 1] as number) ^ turned;
    const w2 = (words[at + 2] as number) ^ turned;
    const w3 = (words[at + 3] as number) ^ turned;
    words[at] = w0;
    words[at + 1] = w1;
    words[at + 2] = w2;
    words[at + 3] = w3;
    notPrintable |=
      (w0 - SPACES) | w0 | (w1 - SPACES) | w1 | (w2 - SPACES) | w2 | (w3 - SPACES) | w3;
  }
  for (const end = first + count; at < end; at += 1) {
    const word = (words[at] as number) ^ turned;
    words[at] = word;
    notPrintable |= (word - SPACES) | word;
  }
  const begins = unmaskBytes(bytes, from, start, mask);
  const ends = unmaskBytes(bytes, start + 4 * count, to, turned >>> 0);
  return begins && ends && (notPrintable & 0x80808080) === 0;
};

/** The memory used last, and its words: many frames share one chunk. */
let lastMemory: ArrayBufferLike | null = null;
let lastWords: Int32Array = new Int32Array(0);

const wordsOf = (memory: ArrayBufferLike): Int32Array => {
  if (memory !== lastMemory) {
    lastMemory = memory;
    lastWords = new Int32Array(memory, 0, memory.byteLength >> 2);
  }
  return lastWords;
};
