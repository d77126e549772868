/**
 * The text of one member of a JSON object, exactly as received. JSON.parse hides it (1.0 and 1e0
 * are read as 1), but the contract is about the literal of `seq`. A packet in our own form never
 * needs it.
 *
 * [portable]
 */
import { decodeJson } from "./json.ts";

/** Index of the quote that ends the JSON string starting at `start` (a quote), or -1. */
const stringEnd = (text: string, start: number): number => {
  let end = text.indexOf('"', start + 1);
  while (end > 0) {
    let slashes = 0;
    while (text.charAt(end - 1 - slashes) === "\\") slashes++;
    if ((slashes & 1) === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  return -1;
};

/** Whether the inside of a JSON string (without its quotes) reads `key`, escapes included. */
const readsAs = (raw: string, key: string): boolean =>
  raw === key || (raw.indexOf("\\") >= 0 && decodeJson(`"${raw}"`) === key);

/**
 * The trimmed text of the last top-level member named `key` (the one that JSON.parse uses), or
 * null. JSON.parse has accepted `text`. Linear in its length.
 */
export const rawMember = (text: string, key: string): string | null => {
  let depth = 0;
  let inValue = false;
  let from = -1;
  let isKey = false;
  let found: string | null = null;
  let i = 0;
  while (i < text.length) {
    const char = text.charAt(i);
    if (char === '"') {
      const end = stringEnd(text, i);
      if (end < 0) return null;
      if (depth === 1 && !inValue) isKey = readsAs(text.substring(i + 1, end), key);
      i = end;
    } else if (depth === 1 && char === ":") {
      inValue = true;
      if (isKey) from = i + 1;
    } else if (depth === 1 && (char === "," || char === "}")) {
      if (from >= 0) found = text.substring(from, i).trim();
      from = -1;
      inValue = false;
      isKey = false;
      if (char === "}") depth--;
    } else if (char === "{" || char === "[") {
      depth++;
    } else if (char === "}" || char === "]") {
      depth--;
    }
    i++;
  }
  return found;
};
