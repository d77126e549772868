/**
 * How deep a JSON text is nested and how many values it has, found without recursion and before it
 * is parsed: `JSON.parse` of XS, QuickJS and JerryScript recurses (XS: 48 bytes of C stack a
 * level), and where a C stack of 8 KB overflows, the device ends. So it does when its heap is full:
 * of `[[],[],…]` three bytes of text take 64 bytes in XS.
 */
const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;
/** Brackets and braces differ in this bit only. */
const BRACE = 32;
const OPENS = 91;
const CLOSES = 93;

export interface Shape {
  /** Of arrays and objects. */
  readonly levels: number;
  /** At most: an array or object that is empty counts twice. */
  readonly values: number;
}

/** The shape of a JSON text, as UTF-8. Brackets and commas in strings do not count. */
export const shapeOf = (bytes: Uint8Array): Shape => {
  let levels = 0;
  let values = 1;
  let depth = 0;
  let quoted = false;
  let escaped = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (escaped) escaped = false;
    else if (byte === QUOTE) quoted = !quoted;
    else if (quoted) escaped = byte === BACKSLASH;
    else if (byte === COMMA) values++;
    else if ((byte & ~BRACE) === OPENS) {
      values++;
      depth++;
      if (depth > levels) levels = depth;
    } else if ((byte & ~BRACE) === CLOSES) depth--;
  }
  return { levels, values };
};
