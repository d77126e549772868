/**
 * Reads files and JSON that a person wrote. Editors add a byte order mark or save as UTF-16.
 * Engines report errors in their own words, and quote the text, which may contain a secret; this
 * reports line and column, and quotes nothing.
 */

import { changedNumber } from "./encoding/faithful-numbers.ts";

const BYTE_ORDER_MARK = "\ufeff";

/** Whether bytes are UTF-16: by its mark, or by the zeros beside its first ASCII characters. */
const isUtf16 = (bytes: Uint8Array): boolean => {
  const [first, second, third, fourth] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return true;
  // A file that lost its content with the power is all zeros.
  return first !== second && ((first === 0 && third === 0) || (second === 0 && fourth === 0));
};

/**
 * The text of a file, without a byte order mark. Throws a SyntaxError that names the encoding and
 * the fix if it is not UTF-8.
 */
export const decodeText = (bytes: Uint8Array): string => {
  if (isUtf16(bytes)) throw new SyntaxError("UTF-16 text; save it as UTF-8");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const lines = new TextDecoder().decode(bytes).split("\n");
    const line = 1 + lines.findIndex((text) => text.includes("\ufffd"));
    throw new SyntaxError(`not UTF-8 text (line ${line}); save it as UTF-8`);
  }
};

/** Space, then one token: a mark, a string, or a number, true, false or null. */
const TOKEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: strings may not hold them.
  /[ \t\n\r]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![0-9A-Za-z_.]))/y;
const SPACE = /[ \t\n\r]*/y;

type Wanted = "value" | "value or ]" | "key" | "key or }" | ":" | ", or end" | "nothing";

/** The place of the first unexpected token; the text's length if it ends too early. */
const brokenAt = (text: string): number => {
  const open: string[] = [];
  let wanted: Wanted = "value";
  TOKEN.lastIndex = 0;
  for (;;) {
    SPACE.lastIndex = TOKEN.lastIndex;
    SPACE.test(text);
    const at = SPACE.lastIndex;
    const [, mark, string, other] = TOKEN.exec(text) ?? [];
    const isKey = wanted === "key" || wanted === "key or }";
    const isValue = wanted === "value" || wanted === "value or ]";
    if (isKey && string !== undefined) wanted = ":";
    else if (wanted === ":" && mark === ":") wanted = "value";
    else if (isValue && mark === "{") {
      open.push("}");
      wanted = "key or }";
    } else if (isValue && mark === "[") {
      open.push("]");
      wanted = "value or ]";
    } else if (wanted === ", or end" && mark === ",") {
      wanted = open.at(-1) === "}" ? "key" : "value";
    } else {
      const ends =
        (isValue && (string ?? other) !== undefined) ||
        (mark === "]" && wanted === "value or ]") ||
        (mark === "}" && wanted === "key or }") ||
        (wanted === ", or end" && mark === open.at(-1));
      if (!ends) return at;
      if (mark !== undefined) open.pop();
      wanted = open.length === 0 ? "nothing" : ", or end";
    }
  }
};

/** A place in a text: its line and column, counted from 1. */
const placeOf = (text: string, at: number): string => {
  const before = text.slice(0, at).split("\n");
  return `line ${before.length}, column ${(before.at(-1) as string).length + 1}`;
};

/**
 * Ignores a byte order mark. Throws a SyntaxError: `invalid JSON (line 3, column 7)`, also for a
 * number that would be read as another one.
 */
export const parseJson = (given: string): unknown => {
  const text = given.startsWith(BYTE_ORDER_MARK) ? given.slice(1) : given;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new SyntaxError(`invalid JSON (${placeOf(text, brokenAt(text))})`);
  }
  const changed = changedNumber(text);
  if (changed === null) return value;
  throw new SyntaxError(
    `JSON with a number that would change on the way (${placeOf(text, changed.at)}); write it as a text, in quotation marks`,
  );
};
