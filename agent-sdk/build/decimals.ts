/**
 * Pass for device programs: writes decimal literals as divisions of integers. Espruino reads
 * integers up to 2^53 exactly but misses the last bits of other numbers (0.3 becomes
 * 0.30000000000000004), while its division rounds as IEEE 754 requires.
 */
import { simple } from "acorn-walk";
import { applyChanges, type Change, parsePiece } from "./piece.ts";

/** Integers and powers of ten are exact up to this one. */
const MAX_DIGITS_BEHIND = 15;
/** The largest power of two that Espruino reads: it parses literals in 64 bits. */
const MAX_SHIFT = 62;

const power = (exponent: number): string => (2n ** BigInt(exponent)).toString();

/** `* 2^a * 2^b` or `/ 2^a / 2^b`; exact, because only the exponent changes. */
const shifted = (significand: string, exponent: number): string => {
  let text = significand;
  const sign = exponent < 0 ? "/" : "*";
  for (let left = Math.abs(exponent); left > 0; left -= MAX_SHIFT) {
    text += sign + power(Math.min(left, MAX_SHIFT));
  }
  return `(${text})`;
};

/** Any finite number above 0 as an integer below 2^53 and a power of two. */
const binary = (value: number): string => {
  let significand = value;
  let exponent = 0;
  // Doubling and halving are exact here: neither leaves the range.
  for (; !Number.isInteger(significand); exponent--) significand *= 2;
  for (; significand > Number.MAX_SAFE_INTEGER; exponent++) significand /= 2;
  return shifted(String(significand), exponent);
};

/** An expression of integers with exactly this value. */
export const exactly = (value: number): string => {
  if (value === Number.POSITIVE_INFINITY) return "(1/0)";
  if (Number.isSafeInteger(value)) return `(${value})`;
  const [, whole = "", behind = ""] = /^(\d+)(?:\.(\d+))?$/.exec(String(value)) ?? [];
  const digits = Number(whole + behind);
  return behind !== "" && behind.length <= MAX_DIGITS_BEHIND && Number.isSafeInteger(digits)
    ? `(${digits}/1${"0".repeat(behind.length)})`
    : binary(value);
};

const isPlain = (value: number, raw: string): boolean =>
  Number.isSafeInteger(value) && /^(\d+|0[xob][\da-f]+)$/i.test(raw);

/** The changes for every literal that is not a plain integer. */
export const decimalChanges = (code: string): Change[] => {
  const changes: Change[] = [];
  simple(parsePiece(code), {
    Literal: ({ start, end, value, raw }) => {
      if (typeof value !== "number" || isPlain(value, raw ?? "")) return;
      changes.push({ start, end, text: exactly(value) });
    },
  });
  return changes;
};

/** Rewrites them. Line numbers stay the same. */
export const exactDecimals = (code: string): string => applyChanges(code, decimalChanges(code));
