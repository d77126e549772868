/**
 * What Espruino does natively in place of protocol's loops: the same names, arguments and results
 * as in protocol/src/encoding, which the build leaves out for these. A turn of a loop costs this
 * interpreter some 10 us on a fast machine and 200 us on a board; a call of 256 B took hundreds.
 *
 * Its decoders accept broken input: `atob` turns what it does not know into zero bytes. So what is
 * decoded is encoded again and compared.
 *
 * [portable]
 */
import { parseStrictly } from "./strict-json.ts";
import { writeJson } from "./write-json.ts";

declare const E: {
  toUint8Array(text: string): Uint8Array;
  CRC32(bytes: Uint8Array): number;
};
declare const process: { memory(collect: boolean): { free: number } };
declare const btoa: (bytes: Uint8Array | string) => string;
declare const atob: (text: string) => string;

/** What the strict parser takes at its peak; without them the program's turn would end in it. */
const STRICT_VARIABLES = 280;
/** Characters of base64 that are decoded at a time: whole groups of four. */
const PIECE = 256;

/** ASCII text to bytes. The caller ensures that every character is below 128. */
export const asciiBytes = E.toUint8Array;

/** ASCII bytes to text. `E.toString` wants its memory in one piece, which a board may not have. */
export const asciiText = (bytes: Uint8Array): string => atob(btoa(bytes));

/** Whether every character is of the alphabet; says nothing of length or low bits. */
export const isBase64urlText = (text: string): boolean => !/[^A-Za-z0-9_-]/.test(text);

export const toBase64url = (bytes: Uint8Array): string =>
  btoa(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

/**
 * The bytes, or null where the part is padded, not canonical, or outside the alphabet. In pieces:
 * the copies that decoding takes are as long as what is decoded.
 */
export const base64urlPart = (text: string, from: number, to: number): Uint8Array | null => {
  const bytes = new Uint8Array(((to - from) * 3) >> 2);
  for (let at = from; at < to; at += PIECE) {
    const piece = text.substring(at, Math.min(at + PIECE, to));
    if (!isBase64urlText(piece)) return null;
    const some = E.toUint8Array(atob(piece.replace(/-/g, "+").replace(/_/g, "/")));
    if (toBase64url(some) !== piece) return null;
    bytes.set(some, ((at - from) * 3) >> 2);
  }
  return bytes;
};

export const fromBase64url = (text: string): Uint8Array | null =>
  base64urlPart(text, 0, text.length);

/** CRC-32 of IEEE 802.3, unsigned. */
export const crc32 = E.CRC32;

/**
 * ASCII JSON text of a value; undefined for what JSON cannot say. The native writer has other
 * characters as \uXXXX by itself; where its text holds a number, of which it may have rounded any,
 * a circle or an `undefined`, it is written again (write-json.ts).
 */
export const encodeJson = (value: unknown): string | undefined => {
  const text = JSON.stringify(value);
  if (typeof value === "string") return text;
  return /[:,\x5b]-*[0-9]| \.\.\. |undefined/.test(`:${text}`) ? writeJson(value) : text;
};

/**
 * The value of a JSON text, or undefined where it is none. The native parser is lenient, but what
 * it would write just so itself it has read rightly, numbers apart that are no short whole ones;
 * the copy is of one member for each name, while the parser keeps two. Undefined too where a text
 * wants the strict parser and the board has no room for it.
 */
export const decodeJson = (text: string): unknown => {
  try {
    // [ as an escape: in a set, that engine takes it for another set. Without room, nearly right
    // will do.
    if (/[:,\x5b] *-*[0-9]+[.eE]/.test(text) && process.memory(false).free > 800)
      return parseStrictly(text);
    const value: unknown = JSON.parse(text);
    const copy =
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? Object.assign({}, value)
        : value;
    const written = JSON.stringify(copy);
    // It writes the digits of \uXXXX in capitals, and accepts nothing else in another case.
    if (written === text || written.toLowerCase() === text.toLowerCase()) return copy;
    return process.memory(true).free > STRICT_VARIABLES ? parseStrictly(text) : undefined;
  } catch {
    return undefined;
  }
};
