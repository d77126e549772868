/**
 * JSON as on the wire: written as ASCII (other characters as \uXXXX), read from UTF-8, and accessed
 * only by own properties, because some runtimes' JSON.parse lets `__proto__` through.
 *
 * [portable]
 */
import { asciiBytes, asciiText, PIECE_LENGTH } from "./bytes.ts";

/** Only printable ASCII, as nearly all messages are: tested without a loop. */
const isPlain = (text: string): boolean => !/[^ -~]/.test(text);

const hex4 = (code: number): string => {
  const text = code.toString(16);
  return "0000".substring(text.length) + text;
};

/**
 * A character as a JSON escape: one \uXXXX, or a pair of surrogates above U+FFFF. Moddable's
 * strings consist of code points, so `charCodeAt` returns those as one number there.
 */
export const jsonEscape = (code: number): string =>
  code < 0x10000
    ? `\\u${hex4(code)}`
    : `\\u${hex4(0xd800 + ((code - 0x10000) >> 10))}\\u${hex4(0xdc00 + (code & 1023))}`;

/** JSON.stringify writes what JSON lacks as `null` or `{}`, as if nothing had been there. */
const isSuspect = (text: string): boolean => text.indexOf("null") >= 0 || text.indexOf("{}") >= 0;

interface Place {
  readonly value: unknown;
  readonly path: string;
  /** JSON.stringify writes null for an item that is no value, and omits a member. */
  readonly isItem: boolean;
}

/**
 * The path of the first member that JSON lacks and JSON.stringify replaces: NaN and the infinities,
 * what is no value in an array, a Map, a promise. Null if there is none. Without recursion, because
 * a board's stack is short; JSON.stringify has found no cycle.
 */
const lackingAt = (top: unknown): string | null => {
  const places: Place[] = [{ value: top, path: "", isItem: false }];
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    let value = place.value;
    if (typeof value === "object" && value !== null) {
      const written = value as { toJSON?: () => unknown; getTime?: unknown };
      if (typeof written.toJSON === "function") value = written.toJSON();
      // An invalid Date, whose time is NaN.
      if (value === null && written.getTime) return place.path;
    }
    if (value === null) continue;
    if (typeof value !== "object") {
      const text = JSON.stringify(value);
      if (text === "null" || (text === undefined && place.isItem)) return place.path;
      continue;
    }
    const isArray = Array.isArray(value);
    const keys = Object.keys(value);
    const isPlain = isArray || Object.prototype.toString.call(value) === "[object Object]";
    if (keys.length === 0 && !isPlain) return place.path;
    // An array may have holes, which are no keys. The last is looked at first, to find the first.
    for (let i = (isArray ? (value as unknown[]) : keys).length - 1; i >= 0; i--) {
      const key = (isArray ? i : keys[i]) as string;
      const member = (value as { readonly [key: string]: unknown })[key];
      places.push({ value: member, path: `${place.path}/${key}`, isItem: isArray });
    }
  }
  return null;
};

const stringify = (value: unknown): string | undefined => {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    // Engines word this differently, which would reveal the engine to a caller. Another error is
    // one that a getter or toJSON threw.
    const isTooMuch = cause && (cause as { name?: unknown }).name === "RangeError";
    const reason = `not a JSON value${isTooMuch ? " that fits the memory" : ""}`;
    throw new TypeError(reason, { cause: cause });
  }
};

/**
 * ASCII JSON text of a value; undefined for values that JSON cannot express (a function,
 * undefined). Throws a TypeError "not a JSON value at /path" for one with a member that JSON lacks,
 * and without a path for a circular reference.
 */
export const encodeJson = (value: unknown): string | undefined => {
  const text = stringify(value);
  if (text !== undefined && isSuspect(text) && value !== null) {
    const path = lackingAt(value);
    if (path !== null) throw new TypeError(`not a JSON value${path === "" ? "" : ` at ${path}`}`);
  }
  if (text === undefined || isPlain(text)) return text;
  const length = text.length;
  let ascii = "";
  for (let start = 0; start < length; start += PIECE_LENGTH) {
    const piece = text.substring(start, start + PIECE_LENGTH);
    const end = Math.min(PIECE_LENGTH, length - start);
    for (let i = 0; i < end; i++) {
      const code = piece.charCodeAt(i);
      ascii += code > 126 ? jsonEscape(code) : piece.charAt(i);
    }
  }
  return ascii;
};

/**
 * Converts UTF-8 bytes of a JSON text to the same JSON in ASCII, so that a runtime with 8-bit
 * strings can parse it. Null if the bytes are not UTF-8 (RFC 3629: overlong forms and surrogates
 * are refused), or if a backslash precedes a character that becomes an escape: the two backslashes
 * would turn an invalid text into valid JSON.
 */
export const asciiJson = (bytes: Uint8Array): string | null => {
  const plain = asciiText(bytes);
  if (isPlain(plain)) return plain;
  let text = "";
  let escaped = false;
  let i = 0;
  while (i < bytes.length) {
    const first = bytes[i] as number;
    i++;
    if (first < 0x80) {
      text += String.fromCharCode(first);
      escaped = first === 92 && !escaped;
    } else {
      if (escaped) return null;
      const more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
      if (first < 0xc2 || first > 0xf4 || i + more > bytes.length) return null;
      let code = first & (63 >> more);
      for (let k = 0; k < more; k++) {
        const next = bytes[i] as number;
        i++;
        if ((next & 0xc0) !== 0x80) return null;
        code = (code << 6) | (next & 63);
      }
      if (code < (more === 1 ? 0x80 : more === 2 ? 0x800 : 0x10000)) return null;
      if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return null;
      text += jsonEscape(code);
    }
  }
  return text;
};

/** The value of a JSON text, or undefined if it is not JSON. */
export const decodeJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/**
 * A value as the bytes of its ASCII JSON; throws a TypeError for values that JSON cannot express.
 */
export const jsonBytes = (value: unknown): Uint8Array => {
  const text = encodeJson(value);
  if (text === undefined) throw new TypeError("not a JSON value");
  return asciiBytes(text);
};

/** The value in UTF-8 bytes of JSON, or undefined if they are not JSON. */
export const readJson = (bytes: Uint8Array): unknown => {
  const text = asciiJson(bytes);
  return text === null ? undefined : decodeJson(text);
};

/** A JSON object (not null, not an array). */
export const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** An own property of a parsed object, or undefined. */
export const own = (object: object, key: string): unknown =>
  Object.prototype.hasOwnProperty.call(object, key)
    ? (object as { [key: string]: unknown })[key]
    : undefined;

/** An own property that is a string, or undefined. */
export const ownString = (object: object, key: string): string | undefined => {
  const value = own(object, key);
  return typeof value === "string" ? value : undefined;
};
