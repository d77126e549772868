/**
 * JSON as JavaScript writes it, because Espruino's own JSON.stringify is inexact: it
 * rounds numbers to 11 digits, and writes `undefined` for a function and ` ... ` for a circle.
 * Natives.ts asks here only for values whose text looks like one of these.
 *
 * [portable]
 */
import { writeNumber } from "./numbers.ts";

/** Espruino never frees a function on which some fourteen of its own calls stand at once. */
const MAX_WRITE_DEPTH = 10;

/** Undefined for what JSON cannot say. */
export const writeJson = (value: unknown, depth: number): string | undefined => {
  if (typeof value === "function" || value === undefined) return undefined;
  // NaN and the infinities, less themselves, are NaN; their native text is "null".
  if (typeof value === "number" && value - value === 0 && (value | 0) !== value)
    return writeNumber(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  // Circles end here too.
  if (depth > MAX_WRITE_DEPTH) throw new Error("too deep");
  const toJSON = (value as { toJSON?: unknown }).toJSON;
  if (typeof toJSON === "function")
    return writeJson((value as { toJSON(): unknown }).toJSON(), depth + 1);
  let text = "";
  if (Array.isArray(value)) {
    for (const item of value) {
      const written = writeJson(item, depth + 1);
      text += `,${written === undefined ? "null" : written}`;
    }
    return `[${text.substring(1)}]`;
  }
  for (const key of Object.keys(value)) {
    const written = writeJson((value as { [key: string]: unknown })[key], depth + 1);
    if (written !== undefined) text += `,${JSON.stringify(key)}:${written}`;
  }
  return `{${text.substring(1)}}`;
};
