/**
 * Literals of a JSON text as they stand there. JSON.parse hides them (1.0 and 1e0 read as 1), and
 * the contract counts the literal of `seq`. Apart from packets, because a packet in our own form
 * never needs it.
 *
 * [portable]
 */
import { decodeJson } from "./json.ts";

const isBlank = (code: number): boolean => code === 32 || code === 10 || code === 13 || code === 9;

/** A character that may stand in a JSON number or in what a lenient runtime takes for one. */
const isNumberPart = (code: number): boolean =>
  (code >= 48 && code <= 57) ||
  (code >= 65 && code <= 90) ||
  (code >= 97 && code <= 122) ||
  code === 43 ||
  code === 45 ||
  code === 46;

/** Index of the quote that ends the JSON string starting at `start` (a quote), or -1. */
export const stringEnd = (text: string, start: number): number => {
  let end = text.indexOf('"', start + 1);
  while (end > 0) {
    let slashes = 0;
    while (text.charAt(end - 1 - slashes) === "\\") slashes++;
    if ((slashes & 1) === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  return -1;
};

/** Whether a JSON string's inside (no quotes) says `key`, be it with escapes. */
const saysKey = (raw: string, key: string): boolean =>
  raw === key || (raw.indexOf("\\") >= 0 && decodeJson(`"${raw}"`) === key);

/**
 * The number literal that stands for the last top-level `key` of a JSON object's text; null where
 * it is absent or no number. JSON.parse hides it (1.0 and 1e0 read as 1), and the contract counts
 * the literal of `seq`. The text has been accepted by JSON.parse. Linear in its length.
 */
export const numberLiteral = (text: string, key: string): string | null => {
  let depth = 0;
  let literal: string | null = null;
  let i = 0;
  while (i < text.length) {
    const char = text.charAt(i);
    if (char === '"') {
      const end = stringEnd(text, i);
      if (end < 0) return null;
      const isKey = depth === 1 && saysKey(text.substring(i + 1, end), key);
      i = end + 1;
      if (isKey) {
        while (isBlank(text.charCodeAt(i))) i++;
        if (text.charAt(i) === ":") {
          i++;
          while (isBlank(text.charCodeAt(i))) i++;
          // A string, array or object is left to the walk, or its inside would upset the depth.
          const from = i;
          while (i < text.length && isNumberPart(text.charCodeAt(i))) i++;
          literal = i > from ? text.substring(from, i) : null;
        }
      }
    } else {
      if (char === "{" || char === "[") depth++;
      if (char === "}" || char === "]") depth--;
      i++;
    }
  }
  return literal;
};
