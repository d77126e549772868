/**
 * Spreads items evenly over an interval without randomness: the fractional parts of multiples of
 * the golden ratio leave no large gap, whatever their number (Knuth, TAOCP 3, section 6.4).
 */

const GOLDEN = (Math.sqrt(5) - 1) / 2;

/** The place of the n-th item, in [0, 1). */
export const stagger = (n: number): number => (n * GOLDEN) % 1;
