/**
 * Bytes and texts without TextEncoder or Buffer. On the wire everything is ASCII JSON (section 2),
 * so text becomes bytes one to one, and other characters are written as \uXXXX.
 *
 * [portable]
 */

/** The plaintext of openings and their answers. */
export const NO_BYTES: Uint8Array = new Uint8Array(0);

/**
 * Long texts are processed in pieces of this many characters: XS and Espruino walk a text from its
 * start to find a character (XS also for `length`), and copy it whole for every character added to
 * it.
 */
export const PIECE_LENGTH = 64;

/** ASCII text to bytes. The caller ensures that every character is below 128. */
export const asciiBytes = (text: string): Uint8Array => {
  const length = text.length;
  const bytes = new Uint8Array(length);
  for (let start = 0; start < length; start += PIECE_LENGTH) {
    const piece = text.substring(start, start + PIECE_LENGTH);
    const end = Math.min(PIECE_LENGTH, length - start);
    for (let i = 0; i < end; i++) bytes[start + i] = piece.charCodeAt(i);
  }
  return bytes;
};

/** ASCII bytes to text. */
export const asciiText = (bytes: Uint8Array): string => {
  let text = "";
  let piece = "";
  for (let i = 0; i < bytes.length; i++) {
    piece += String.fromCharCode(bytes[i] as number);
    if (i % PIECE_LENGTH === PIECE_LENGTH - 1) {
      text += piece;
      piece = "";
    }
  }
  return text + piece;
};

/** Any text to UTF-8 (RFC 3629); a lone surrogate becomes U+FFFD, as in WHATWG encoders. */
export const utf8Bytes = (text: string): Uint8Array => {
  const bytes: number[] = [];
  for (let i = 0; i < text.length; i++) {
    let code = text.charCodeAt(i);
    if (code >= 0xd800 && code <= 0xdfff) {
      const low = i + 1 < text.length ? text.charCodeAt(i + 1) : 0;
      if (code < 0xdc00 && low >= 0xdc00 && low <= 0xdfff) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        i++;
      } else {
        code = 0xfffd;
      }
    }
    if (code < 0x80) {
      bytes.push(code);
    } else if (code < 0x800) {
      bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    } else if (code < 0x10000) {
      bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    } else {
      bytes.push(
        0xf0 | (code >> 18),
        0x80 | ((code >> 12) & 63),
        0x80 | ((code >> 6) & 63),
        0x80 | (code & 63),
      );
    }
  }
  return new Uint8Array(bytes);
};

/** Two hexadecimal digits per byte, lower case. */
export const toHex = (bytes: Uint8Array): string => {
  let text = "";
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    text += "0123456789abcdef".charAt(byte >> 4) + "0123456789abcdef".charAt(byte & 15);
  }
  return text;
};

/** The bytes, or null if the text is not whole pairs of hexadecimal digits, of either case. */
export const fromHex = (text: string): Uint8Array | null => {
  if ((text.length & 1) !== 0) return null;
  const bytes = new Uint8Array(text.length / 2);
  const lower = text.toLowerCase();
  for (let i = 0; i < bytes.length; i++) {
    const high = "0123456789abcdef".indexOf(lower.charAt(2 * i));
    const low = "0123456789abcdef".indexOf(lower.charAt(2 * i + 1));
    if (high < 0 || low < 0) return null;
    bytes[i] = high * 16 + low;
  }
  return bytes;
};

/** Joins two arrays. */
export const concatBytes = (a: Uint8Array, b: Uint8Array): Uint8Array => {
  const all = new Uint8Array(a.length + b.length);
  all.set(a, 0);
  all.set(b, a.length);
  return all;
};

/** Whether length and content are equal, in a time that depends only on the lengths. */
export const equalBytes = (a: Uint8Array, b: Uint8Array): boolean => {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= (a[i] as number) ^ (b[i] as number);
  return difference === 0;
};

/** The same for ASCII texts, such as sids and tokens. */
export const equalTexts = (a: string, b: string): boolean => {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
};
