/**
 * Exact decimal texts of doubles, because Espruino's own are not: it writes 11 digits after the
 * point, and its reader rounds at every digit. Short numbers need one multiplication or division of
 * two whole doubles, which is rounded correctly; the rest is computed in integers of any length.
 *
 * [portable]
 */

/** An integer: its digits in groups of eight, lowest first. No limb's product exceeds 2^53. */
type Big = number[];
const LIMB = 100000000;
/** Powers of ten up to this one are exact doubles. */
const EXACT_TENS = 22;

const multiplyBig = (big: Big, base: number, times: number): void => {
  let left = times;
  while (left > 0) {
    let factor = 1;
    while (left > 0 && factor < 2000000) {
      factor *= base;
      left--;
    }
    let carry = 0;
    for (let i = 0; i < big.length; i++) {
      const product = (big[i] as number) * factor + carry;
      carry = Math.floor(product / LIMB);
      big[i] = product - carry * LIMB;
    }
    if (carry > 0) big.push(carry);
  }
};

const digitsOf = (big: Big): string => {
  let digits = "";
  for (const limb of big) digits = String(LIMB + limb).substring(1) + digits;
  return digits.replace(/^0*/, "");
};

/** A double that is not negative as `m` * 2^`q`, both integers. */
const partsOf = (value: number): { readonly m: Big; readonly q: number } => {
  const words = new Uint32Array(new Float64Array([value]).buffer);
  const high = words[1] as number;
  const exponent = high >> 20;
  const top = exponent > 0 ? (high & 1048575) + 1048576 : high;
  const m = top * 4294967296 + (words[0] as number);
  return { m: [m % LIMB, Math.floor(m / LIMB)], q: Math.max(exponent, 1) - 1075 };
};

/** The next double up or down, by its bits. `step`: 1 or -1. */
const neighbour = (value: number, step: number): number => {
  const doubles = new Float64Array([value]);
  const words = new Int32Array(doubles.buffer);
  words[0] = ((words[0] as number) + step) | 0;
  if (words[0] === (step > 0 ? 0 : -1)) words[1] = (words[1] as number) + step;
  return doubles[0] as number;
};

/**
 * Whether digits * 10^exponent rounds to a double above this one: it is above the middle between
 * this one and the next, or equal to it and the next is even.
 */
const isOver = (digits: string, exponent: number, value: number): boolean => {
  const left: Big = [];
  // Number() would read a leading zero as octal there.
  for (let end = digits.length; end > 0; end -= 8)
    left.push(parseInt(digits.substring(end - 8, end), 10));
  const parts = partsOf(value);
  const middle = parts.m;
  const odd = (middle[0] as number) & 1;
  multiplyBig(middle, 2, 1);
  middle[0] = (middle[0] as number) + 1;
  multiplyBig(left, 5, exponent);
  multiplyBig(middle, 5, -exponent);
  const twos = exponent + 1 - parts.q;
  multiplyBig(left, 2, twos);
  multiplyBig(middle, 2, -twos);
  const a = digitsOf(left);
  const b = digitsOf(middle);
  return a.length === b.length ? a > b || (a === b && odd > 0) : a.length > b.length;
};

const tenTo = (exponent: number): number => {
  let power = 1;
  for (let i = 0; i < exponent; i++) power *= 10;
  return power;
};

/** The double that a JSON number denotes. */
export const readNumber = (text: string): number => {
  if (text.charAt(0) === "-") return -readNumber(text.substring(1));
  const parts = text.toLowerCase().split("e");
  const mantissa = (parts[0] as string).split(".");
  const exponent = (parseInt(parts[1] as string, 10) || 0) - (mantissa[1] || "").length;
  const digits = mantissa.join("").replace(/^0*/, "");
  const size = digits.length + exponent;
  if (digits === "" || size < -330) return 0;
  if (size > 310) return Infinity;
  let value = parseInt(digits.substring(0, 17), 10);
  let tens = exponent + Math.max(0, digits.length - 17);
  const isRight = digits.length < 16 && Math.abs(exponent) <= EXACT_TENS;
  for (; tens > EXACT_TENS; tens -= EXACT_TENS) value *= 1e22;
  for (; tens < -EXACT_TENS; tens += EXACT_TENS) value /= 1e22;
  value = tens < 0 ? value / tenTo(-tens) : value * tenTo(tens);
  if (isRight) return value;
  while (value < Infinity && isOver(digits, exponent, value)) value = neighbour(value, 1);
  while (value > 0 && !isOver(digits, exponent, neighbour(value, -1))) value = neighbour(value, -1);
  return value;
};

/** A text for this finite number: 21.5, 0.5, 5e-2 if 15 digits suffice, otherwise with 18. */
export const writeNumber = (value: number): string => {
  if (value < 0) return `-${writeNumber(-value)}`;
  if (value < 1e21 && Math.floor(value) === value) return String(value);
  for (let i = 1; i <= EXACT_TENS && value * tenTo(i) < 9e15; i++) {
    const whole = Math.floor(value * tenTo(i) + 0.5);
    if (whole / tenTo(i) === value) {
      const text = String(whole);
      const point = text.length - i;
      return point < 0
        ? `${text}e-${i}`
        : `${text.substring(0, point) || "0"}.${text.substring(point)}`;
    }
  }
  const parts = partsOf(value);
  multiplyBig(parts.m, 2, parts.q);
  multiplyBig(parts.m, 5, -parts.q);
  const digits = digitsOf(parts.m);
  // 18 digits are always enough, even truncated: they are within half the distance to a neighbour.
  const head = digits.substring(0, 18);
  return `${head}e${digits.length - head.length + Math.min(0, parts.q)}`;
};
