/**
 * base64url without padding (RFC 4648 section 5), strict: the runtimes' own decoders accept
 * malformed input (Espruino turns it into zero bytes), so the alphabet, the length and the unused
 * low bits are checked here. A `p` that is not canonical is refused (section 2).
 *
 * If the engine has ES2026's `toBase64` and `fromBase64`, they do the work, 4 to 40 times as fast
 * as the loops. They are lenient too (whitespace, padding, spare bits), so the text's length and
 * last character are compared with the result.
 *
 * [portable]
 */
import { PIECE_LENGTH } from "./bytes.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const makeValues = (): Uint8Array => {
  const values = new Uint8Array(128);
  values.fill(255);
  for (let i = 0; i < 64; i++) values[ALPHABET.charCodeAt(i)] = i;
  return values;
};

const IN_URLS = { alphabet: "base64url", omitPadding: true } as const;

/** 255 marks characters outside the alphabet. */
const VALUES = /* @__PURE__ */ makeValues();

/** Whether every character is in the alphabet; ignores length and low bits. */
export const isBase64urlText = (text: string): boolean => !/[^A-Za-z0-9_-]/.test(text);

const encodeInLoop = (bytes: Uint8Array): string => {
  let text = "";
  let piece = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const left = bytes.length - i;
    const a = bytes[i] as number;
    const b = left > 1 ? (bytes[i + 1] as number) : 0;
    const c = left > 2 ? (bytes[i + 2] as number) : 0;
    piece += ALPHABET.charAt(a >> 2) + ALPHABET.charAt(((a & 3) << 4) | (b >> 4));
    if (left > 1) piece += ALPHABET.charAt(((b & 15) << 2) | (c >> 6));
    if (left > 2) piece += ALPHABET.charAt(c & 63);
    if (i % PIECE_LENGTH < 3) {
      text += piece;
      piece = "";
    }
  }
  return text + piece;
};

const decodeInLoop = (text: string): Uint8Array | null => {
  const length = text.length;
  if ((length & 3) === 1 || !isBase64urlText(text)) return null;
  const bytes = new Uint8Array(Math.floor((length * 3) / 4));
  let at = 0;
  let bits = 0;
  let held = 0;
  for (let start = 0; start < length; start += PIECE_LENGTH) {
    const piece = text.substring(start, start + PIECE_LENGTH);
    const end = Math.min(PIECE_LENGTH, length - start);
    for (let i = 0; i < end; i++) {
      held = ((held << 6) | (VALUES[piece.charCodeAt(i)] as number)) & 0xffff;
      bits += 6;
      if (bits >= 8) {
        bits -= 8;
        bytes[at] = (held >> bits) & 255;
        at++;
      }
    }
  }
  // The remaining 2 or 4 bits must be zero, or two texts would encode the same bytes.
  return (held & ((1 << bits) - 1)) === 0 ? bytes : null;
};

export const toBase64url = (bytes: Uint8Array): string =>
  bytes.toBase64 === undefined ? encodeInLoop(bytes) : bytes.toBase64(IN_URLS);

/** The bytes, or null if the text is padded, not canonical, or outside the alphabet. */
export const fromBase64url = (text: string): Uint8Array | null => {
  if (Uint8Array.fromBase64 === undefined) return decodeInLoop(text);
  try {
    const bytes = Uint8Array.fromBase64(text, IN_URLS);
    const length = text.length;
    const spareBits = (length * 6) & 7; // 6: no text has this length
    // Fewer bytes than the length requires: something was skipped.
    if (spareBits === 6 || bytes.length !== Math.floor((length * 3) / 4)) return null;
    const last = VALUES[text.charCodeAt(length - 1)] as number;
    return (last & ((1 << spareBits) - 1)) === 0 ? bytes : null;
  } catch {
    return null; // a character outside the alphabet, or an impossible length
  }
};

/**
 * The same for a part of a text. Separate, because a board can do this without copying that part.
 */
export const base64urlPart = (text: string, from: number, to: number): Uint8Array | null =>
  fromBase64url(text.substring(from, to));
