/**
 * The text of one member of a JSON object, as it stands there. An envelope may carry its packet as
 * an object instead of a text, and the packet's rules count its literals (`"seq":1.0` is refused),
 * which JSON.parse hides.
 *
 * [portable]
 */
import { stringEnd } from "./literal.ts";

/**
 * The trimmed text of the last top-level member named `key` (as JSON.parse, the last one counts),
 * or null. `text` is known to parse as an object. A key written with escapes is not found.
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
      if (depth === 1 && !inValue) isKey = text.substring(i + 1, end) === key;
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
