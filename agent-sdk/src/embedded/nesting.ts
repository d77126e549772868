/**
 * How deep a JSON text is nested, found without recursion and before it is parsed: `JSON.parse` of
 * XS, QuickJS and JerryScript recurses (XS: 48 bytes of C stack a level), and where a C stack of
 * 8 KB overflows, the device ends.
 */
const QUOTE = 34;
const BACKSLASH = 92;
/** Brackets and braces differ in this bit only. */
const BRACE = 32;
const OPENS = 91;
const CLOSES = 93;

/** Levels of arrays and objects in a JSON text, as UTF-8. Brackets in strings do not count. */
export const nestingOf = (bytes: Uint8Array): number => {
  let deepest = 0;
  let depth = 0;
  let quoted = false;
  let escaped = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (escaped) escaped = false;
    else if (byte === QUOTE) quoted = !quoted;
    else if (quoted) escaped = byte === BACKSLASH;
    else if ((byte & ~BRACE) === OPENS) {
      depth++;
      if (depth > deepest) deepest = depth;
    } else if ((byte & ~BRACE) === CLOSES) depth--;
  }
  return deepest;
};
