/**
 * Numbers in JSON texts that are others, or none, once they have been read: JSON has any, a double
 * only those of 53 bits. A serial number or the number of a card would change without a word.
 */

/** Texts, which are skipped, and numbers. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
/** No other number has that many digits or such an exponent. */
const SUSPECT = /\d{9}|\d[eE][+-]?\d\d\d/;

/** The same for all ways to write a number: its digits without outer zeros, and their weight. */
export const canonicalNumber = (number: string): string => {
  const [, sign, whole = "", part = "", power = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? [];
  const digits = (whole + part).replace(/^0+/, "");
  const short = digits.replace(/(?<!0)0+$/, "");
  return short === ""
    ? whole && "0"
    : `${sign}${short}e${Number(power) - part.length + digits.length - short.length}`;
};

/** The numbers of a valid JSON text as they are written, and where each begins. */
export const numbersIn = (text: string): { readonly token: string; readonly at: number }[] =>
  [...text.matchAll(TOKEN)]
    .filter(([token]) => !token.startsWith('"'))
    .map((found) => ({ token: found[0], at: found.index }));

/** Whether no double is near: it would be read as zero or infinity. */
const isOutside = (token: string): boolean => {
  const value = Number(token);
  return !Number.isFinite(value) || (value === 0 && canonicalNumber(token) !== "0");
};

const isInteger = (token: string): boolean => Number.isInteger(Number(token));

/**
 * Whether JavaScript would write it as another number of which a person would notice: another
 * integer, none, or zero. The last digits of a fraction are below what can be measured.
 */
export const isChanged = (token: string): boolean =>
  isOutside(token) ||
  (isInteger(token) && canonicalNumber(token) !== canonicalNumber(String(Number(token))));

/**
 * Whether it is an integer that no double is. Those that a double is may have more digits than
 * JavaScript writes, and exponents belong to numbers that have been doubles before.
 */
export const isUnheld = (token: string): boolean =>
  isOutside(token) ||
  (/^-?\d+$/.test(token) && isChanged(token) && BigInt(token) !== BigInt(Number(token)));

/** The first such number of a valid JSON text, or null. */
export const changedNumber = (
  text: string,
  is: (token: string) => boolean = isChanged,
): { readonly token: string; readonly at: number } | null =>
  SUSPECT.test(text) ? (numbersIn(text).find(({ token }) => is(token)) ?? null) : null;
