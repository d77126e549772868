/**
 * Exact decimal texts of doubles, because Espruino's own are not: it writes 11 digits after the
 * point, and its reader rounds at every digit. Short numbers need one multiplication or division of
 * two whole doubles, which is rounded correctly. The rest is computed with the sum of two doubles,
 * 106 bits (T. J. Dekker, A Floating-Point Technique for Extending the Available Precision, 1971):
 * a text of 30 digits takes as long as a short one, which a relay could send by the hundred. A text
 * that is within 1e-30 of the middle of two doubles may become the other one.
 *
 * [portable]
 */

/** An unevaluated sum of two doubles, the second at most half a unit in the first's last place. */
type Sum = readonly [number, number];

/** Powers of five, and so of ten, up to this one are exact doubles. */
const EXACT_POWER = 22;
const BILLION = 1000000000;

/** The sum of a number and a smaller one. */
const sumOf = (large: number, small: number): Sum => {
  const sum = large + small;
  return [sum, small - (sum - large)];
};

/** The upper half of a double's 53 bits. */
const upper = (value: number): number => {
  const shifted = 134217729 * value;
  return shifted - (shifted - value);
};

/** What is missing from the rounded `product` of `a` and `b`. */
const lacking = (a: number, b: number, product: number): number => {
  const highA = upper(a);
  const highB = upper(b);
  const lowA = a - highA;
  const lowB = b - highB;
  return highA * highB - product + highA * lowB + lowA * highB + lowA * lowB;
};

const times = (sum: Sum, factor: number): Sum => {
  const product = sum[0] * factor;
  return sumOf(product, lacking(sum[0], factor, product) + sum[1] * factor);
};

const over = (sum: Sum, divisor: number): Sum => {
  const quotient = sum[0] / divisor;
  const product = quotient * divisor;
  const rest = sum[0] - product - lacking(quotient, divisor, product) + sum[1];
  return sumOf(quotient, rest / divisor);
};

const power = (base: number, exponent: number): number => {
  let product = 1;
  let square = base;
  for (let left = exponent; left > 0; left >>= 1) {
    if ((left & 1) === 1) product *= square;
    square *= square;
  }
  return product;
};

const twoTo = (exponent: number): number =>
  exponent < 0 ? power(0.5, -exponent) : power(2, exponent);

/** Times 5^exponent: times ten would be too large or small for its parts. */
const scaled = (sum: Sum, exponent: number): Sum => {
  let product = sum;
  for (let left = Math.abs(exponent); left > 0; left -= EXACT_POWER) {
    const fives = power(5, Math.min(left, EXACT_POWER));
    product = exponent > 0 ? times(product, fives) : over(product, fives);
  }
  return product;
};

/** The double next to a sum times `two`, a power of two, where doubles have less than 53 bits. */
const roundedTiny = (sum: Sum, two: number): number => {
  // The smallest of the doubles with 53 bits, in units of the sum.
  const least = power(0.5, 1022) / two;
  if (sum[0] >= least) return sum[0] * two;
  const unit = least / 4503599627370496;
  const head = sum[0] + least - least;
  const rest = sum[0] - head;
  const up = rest - unit / 2 + sum[1] > 0 ? unit : 0;
  const down = rest + unit / 2 + sum[1] < 0 ? unit : 0;
  return (head + up - down) * two;
};

/** The double that a JSON number denotes. */
export const readNumber = (text: string): number => {
  if (text.charAt(0) === "-") return -readNumber(text.substring(1));
  const parts = text.toLowerCase().split("e");
  const mantissa = (parts[0] as string).split(".");
  let exponent = (parseInt(parts[1] as string, 10) || 0) - (mantissa[1] || "").length;
  let digits = mantissa.join("").replace(/^0*/, "");
  const size = digits.length + exponent;
  if (digits === "" || size < -330) return 0;
  if (size > 310) return Infinity;
  if (digits.length < 16 && Math.abs(exponent) <= EXACT_POWER) {
    const tens = power(10, Math.abs(exponent));
    return exponent < 0 ? parseInt(digits, 10) / tens : parseInt(digits, 10) * tens;
  }
  if (digits.length > 30) {
    exponent = size - 30;
    // Of the others it matters only whether they are more than nothing.
    digits = digits.substring(0, 29) + (/[1-9]/.test(digits.substring(29)) ? 1 : 0);
  }
  const tail = digits.substring(15);
  const head = times([parseInt(digits.substring(0, 15), 10), 0], power(10, tail.length));
  const sum = sumOf(head[0], parseInt(tail, 10) || 0);
  const value = scaled(sumOf(sum[0], sum[1] + head[1]), exponent);
  const two = twoTo(exponent);
  return size < -300 ? roundedTiny(value, two) : value[0] * two;
};

/** A text for this finite number: 21.5, 0.5, 5e-2 if 15 digits suffice, otherwise with 17 to 19. */
export const writeNumber = (value: number): string => {
  if (value < 0) return `-${writeNumber(-value)}`;
  if (value < 1e21 && Math.floor(value) === value) return String(value);
  for (let i = 1; i <= EXACT_POWER && value * power(10, i) < 9e15; i++) {
    const whole = Math.floor(value * power(10, i) + 0.5);
    if (whole / power(10, i) === value) {
      const text = String(whole);
      const point = text.length - i;
      return point < 0
        ? `${text}e-${i}`
        : `${text.substring(0, point) || "0"}.${text.substring(point)}`;
    }
  }
  let exponent = 0;
  for (let rest = value; rest < 1e17; rest *= 10) exponent++;
  for (let rest = value; rest >= 1e18; rest /= 10) exponent--;
  const sum = scaled([value * twoTo(exponent), 0], exponent);
  const last = sum[0] % BILLION;
  const low = last + Math.floor(sum[1] + 0.5);
  const carry = Math.floor(low / BILLION);
  return `${(sum[0] - last) / BILLION + carry}${String(BILLION + low - carry * BILLION).substring(1)}e${-exponent}`;
};
