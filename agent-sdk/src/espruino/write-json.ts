/**
 * JSON as JavaScript writes it, because Espruino's own JSON.stringify is inexact: it rounds numbers
 * to 11 digits, and writes `undefined` for a function and ` ... ` for a circular reference.
 * natives.ts uses this only for values whose text looks like one of these.
 *
 * [portable]
 */
import { writeNumber } from "./numbers.ts";

/** Maximum nesting of arrays and objects. It also stops circular references. */
const MAX_WRITE_DEPTH = 11;

/** An object or array that has begun. */
interface Open {
  readonly value: { readonly [key: string]: unknown };
  /** Null for an array. */
  readonly keys: string[] | null;
  readonly count: number;
  /** The number of members written. */
  written: number;
  text: string;
}

const opened = (value: object): Open => {
  const keys = Array.isArray(value) ? null : Object.keys(value);
  const count = (keys === null ? (value as unknown[]) : keys).length;
  return { value: value as Open["value"], keys: keys, count: count, written: 0, text: "" };
};

const last = (open: readonly Open[]): Open => open[open.length - 1] as Open;

const nextKey = (open: Open): string =>
  open.keys === null ? String(open.written) : (open.keys[open.written] as string);

const add = (open: Open, text: string | undefined): void => {
  if (open.keys === null) open.text += `,${text}`;
  else if (text !== undefined) open.text += `,${JSON.stringify(nextKey(open))}:${text}`;
  open.written++;
};

const end = (open: Open): string =>
  open.keys === null ? `[${open.text.substring(1)}]` : `{${open.text.substring(1)}}`;

/**
 * The text of a value without members; undefined for NaN and the infinities, too, which minus
 * themselves are NaN.
 */
const plain = (value: unknown): string | undefined => {
  if (typeof value === "function" || value === undefined) return undefined;
  if (typeof value !== "number" || (value | 0) === value) return JSON.stringify(value);
  return value - value === 0 ? writeNumber(value) : undefined;
};

/**
 * Undefined for what JSON cannot express; throws an Error with the path of a member that would
 * become null. Not recursive: Espruino locks a function's code several times for each of its calls
 * and never frees what has fifteen locks, so each answer with four levels of objects would cost the
 * board a variable.
 */
export const writeJson = (value: unknown): string | undefined => {
  const open: Open[] = [];
  let next = value;
  while (true) {
    const toJSON =
      typeof next === "object" && next !== null ? (next as { toJSON?: unknown }).toJSON : null;
    if (typeof toJSON === "function") next = (next as { toJSON(): unknown }).toJSON();
    if (typeof next === "object" && next !== null) {
      if (open.length === MAX_WRITE_DEPTH) return undefined;
      open.push(opened(next));
    } else {
      const text = plain(next);
      if (open.length === 0) return text;
      const isLost = last(open).keys === null || typeof next === "number";
      if (text === undefined && isLost)
        throw new Error(`not a JSON value at /${open.map(nextKey).join("/")}`);
      add(last(open), text);
    }
    let around = last(open);
    // What has ended is a member of what is open around it, which may end with it.
    while (around.written === around.count) {
      const text = end(around);
      open.pop();
      if (open.length === 0) return text;
      around = last(open);
      add(around, text);
    }
    next = around.value[nextKey(around)];
  }
};
