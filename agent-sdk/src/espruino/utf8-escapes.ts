/**
 * Text on engines whose strings have 8 bits per character, as most builds of Espruino: a program
 * holds UTF-8, one byte per character. In JSON text each of these bytes is an escape from \u0080 to
 * \u00FF, which is what the engine's own JSON.parse and JSON.stringify read and write; so a text
 * that came from elsewhere is rewritten into that form before it is parsed, and what the engine
 * wrote is rewritten into characters before it leaves. Both work on valid JSON and leave other text
 * for the parser to refuse.
 *
 * [portable]
 */

/** What stands for half of a surrogate pair, which UTF-8 cannot express. */
const REPLACEMENT = 0xfffd;

/** Four digits as this engine writes them. */
const escapeOf = (unit: number): string =>
  `\\u${(0x10000 + unit).toString(16).substring(1).toUpperCase()}`;

/** The code unit of the escape at `at`; -1 if there is none. */
const unitAt = (text: string, at: number): number => {
  const found = text.substring(at, at + 6);
  const unit = parseInt(found.substring(2), 16);
  // The parser of numbers accepts fewer digits, and whatever follows them.
  return escapeOf(unit).toLowerCase() === found.toLowerCase() ? unit : -1;
};

/** Which half of a surrogate pair: 0 the first, 1 the second, negative or larger for no half. */
const half = (unit: number): number => (unit >> 10) - 0x36;

/** The escapes of the UTF-8 bytes of a code point from 0x80. */
const bytesOf = (point: number): string => {
  const more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  let rest = point;
  let written = "";
  for (let i = more; i > 0; i--) {
    written = escapeOf(0x80 | (rest & 63)) + written;
    rest >>= 6;
  }
  return escapeOf(((0xff00 >> (more + 1)) & 255) | rest) + written;
};

/** Bytes that were not escaped, as escapes. */
const withoutRaw = (text: string): string => {
  if (!/[^ -~]/.test(text)) return text;
  let written = "";
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    written += code < 0x80 ? text.charAt(i) : escapeOf(code);
  }
  return written;
};

/** JSON text in which every character from U+0080 is the escapes of its UTF-8 bytes. */
export const escapeBytes = (text: string): string => {
  let written = "";
  let at = 0;
  while (true) {
    const next = text.indexOf("\\", at);
    if (next < 0) return written + withoutRaw(text.substring(at));
    written += withoutRaw(text.substring(at, next));
    let unit = unitAt(text, next);
    at = next + (unit < 0 ? 2 : 6);
    if (half(unit) === 0) {
      const second = unitAt(text, at);
      if (half(second) === 1) {
        unit = 0x10000 + ((unit & 0x3ff) << 10) + (second & 0x3ff);
        at += 6;
      }
    }
    if (unit >> 11 === 0x1b) unit = REPLACEMENT;
    written += unit < 0x80 ? text.substring(next, at) : bytesOf(unit);
  }
};

/** A string's JSON text, its bytes as characters; unchanged if they are not UTF-8. */
const withCharacters = (text: string): string => {
  let written = "";
  let at = 0;
  while (true) {
    const next = text.indexOf("\\", at);
    if (next < 0) return written + text.substring(at);
    const lead = unitAt(text, next);
    written += text.substring(at, next);
    at = next + (lead < 0 ? 2 : 6);
    if (lead < 0x80) {
      written += text.substring(next, at);
      continue;
    }
    const more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    let point = lead & (63 >> more);
    for (let i = 0; i < more; i++) {
      const byte = unitAt(text, at);
      point = byte >> 6 === 2 ? (point << 6) | (byte & 63) : -1;
      at += 6;
      if (point < 0) return text;
    }
    const isCharacter = point >= 0x80 && point < 0x110000 && point >> 11 !== 0x1b;
    // A longer form than the shortest is no UTF-8.
    if (!isCharacter || bytesOf(point) !== text.substring(next, at)) return text;
    written +=
      point < 0x10000
        ? escapeOf(point)
        : escapeOf(0xd7c0 + (point >> 10)) + escapeOf(0xdc00 | (point & 0x3ff));
  }
};

/**
 * JSON text of the engine, in which a string that is UTF-8 has become its characters. In a string
 * that is not, each byte stays a character from U+0080 to U+00FF.
 */
export const unescapeBytes = (text: string): string => {
  let written = "";
  let at = 0;
  while (true) {
    const from = text.indexOf('"', at);
    if (from < 0) return written + text.substring(at);
    let to = from + 1;
    while (to < text.length && text.charAt(to) !== '"') to += text.charAt(to) === "\\" ? 2 : 1;
    to++;
    written += text.substring(at, from) + withCharacters(text.substring(from, to));
    at = to;
  }
};
