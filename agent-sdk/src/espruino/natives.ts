/**
 * Native Espruino functions that replace protocol's loops: the same names, arguments and results as
 * in protocol/src/encoding, which the build omits in favour of these. One turn of a loop costs this
 * interpreter some 10 us on a fast machine and 200 us on a board; a call of 256 B took hundreds.
 *
 * Its decoders accept malformed input: `atob` turns unknown characters into zero bytes. So decoded
 * data is encoded again and compared.
 *
 * [portable]
 */
import { parseStrictly } from "./strict-json.ts";
import { escapeBytes, unescapeBytes } from "./utf8-escapes.ts";
import { writeJson } from "./write-json.ts";

declare const E: {
  toUint8Array(text: string): Uint8Array;
  CRC32(bytes: Uint8Array): number;
};
declare const process: { memory(collect: boolean): { free: number } };
declare const btoa: (bytes: Uint8Array | string) => string;
declare const atob: (text: string) => string;

/** The strict parser's peak memory; with less, the program's turn would end inside it. */
const STRICT_VARIABLES = 280;
/** Characters of base64 that are decoded at a time: whole groups of four. */
const PIECE = 256;

/** Whether strings hold every character, as in the builds for Bangle.js: asked by value. */
const isWide = JSON.parse('"\\u20ac"').charCodeAt(0) === 0x20ac;

/** ASCII text to bytes. The caller ensures that every character is below 128. */
export const asciiBytes = E.toUint8Array;

/** ASCII bytes to text. `E.toString` needs contiguous memory, which a board may not have. */
export const asciiText = (bytes: Uint8Array): string => atob(btoa(bytes));

/** Whether every character is in the alphabet; ignores length and low bits. */
export const isBase64urlText = (text: string): boolean => !/[^\w-]/.test(text);

export const toBase64url = (bytes: Uint8Array): string =>
  btoa(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

/**
 * The bytes, or null if the part is padded, not canonical, or outside the alphabet. In pieces,
 * because the copies made while decoding are as long as what is decoded.
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
 * ASCII JSON text of a value; undefined for what JSON cannot express. The native writer escapes
 * other characters as \uXXXX by itself; where strings have 8 bits, UTF-8 becomes characters. If its
 * text contains a number (which it may have rounded), a circular reference, an `undefined` or a
 * `null` (which may be a NaN), it is written again (write-json.ts).
 */
export const encodeJson = (value: unknown): string | undefined => {
  let text: string | undefined = JSON.stringify(value);
  const isInexact =
    typeof value !== "string" && /[:,\x5b]-*\d| \.\.\. |undefined|null/.test(`:${text}`);
  if (isInexact) text = writeJson(value);
  // The form of every byte from 0x80; most texts have none.
  return isWide || text === undefined || text.indexOf("\\u00") < 0 ? text : unescapeBytes(text);
};

/**
 * The value of a JSON text, or undefined if it is not JSON. The native parser is lenient, but a
 * text that it would itself write in the same form has been read correctly, except for numbers that
 * are not short integers; the copy has one member for each name, while the parser keeps two. In an
 * inner object the copy may have both, too, and then the first counts. Also undefined if a text
 * needs the strict parser and the board has no room for it.
 */
export const decodeJson = (given: string): unknown => {
  try {
    const isPlain = isWide || (given.indexOf("\\u") < 0 && !/[^ -~]/.test(given));
    const text = isPlain ? given : escapeBytes(given);
    // The engine multiplies by ten as often as an exponent says, wherever it accepts a number. [ as
    // an escape, because in a set this engine takes it as the start of another set. Without room,
    // small errors are accepted.
    const isNative =
      !/[\d._]e[-+]*[\d_][\d_][\d_][\d_]/i.test(text) &&
      !(/[:,\x5b]\s*-*\d+[.e]/i.test(`:${text}`) && process.memory(false).free > 800);
    if (isNative) {
      const value: unknown = JSON.parse(text);
      const copy =
        typeof value === "object" && value !== null && !Array.isArray(value)
          ? Object.assign({}, value)
          : value;
      const written = JSON.stringify(copy);
      // It writes the digits of \uXXXX in upper case, and accepts nothing else in another case.
      if (written === text || written.toLowerCase() === text.toLowerCase()) return copy;
    }
    return process.memory(true).free > STRICT_VARIABLES ? parseStrictly(text) : undefined;
  } catch {
    return undefined;
  }
};
