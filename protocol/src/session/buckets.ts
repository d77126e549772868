/**
 * The token buckets of section 2, "Bounded work". All are of one size, so that a board needs only
 * one number for each: the time at which it is full again.
 *
 * [portable]
 */

/** Openings and other packets of sids that the agent does not hold. */
export const OPENINGS = 0;
/** First packets, with an `A` that the agent derives itself; a stored one gives its token back. */
export const FIRSTS = 1;
/** Tags that failed for held sids. */
export const FORGERIES = 2;
/** Derivations of `A`, to tell the first two apart. */
export const LOOKUPS = 3;
/** A look-up is two HMACs, so this bucket has several times the rate and burst of the others. */
const LOOKUP_FACTOR = 4;

/** Tokens may come back this much too early, because times are sums of fractions. */
const ROUNDING_MS = 0.01;

export class Buckets {
  // `declare`, because Espruino cannot parse a field without a value; this erases to nothing.
  /** Milliseconds until a token comes back. */
  declare private readonly interval: number;
  /** Milliseconds until an empty bucket is full. */
  declare private readonly window: number;
  declare private readonly fullAt: number[];

  /** Full at first, with `burst` tokens each; a `burst` of 0 makes them empty for ever. */
  constructor(perSecond: number, burst: number) {
    const full = burst === 0 ? Infinity : 0;
    this.interval = 1000 / perSecond;
    this.window = burst * this.interval;
    this.fullAt = [full, full, full, full];
  }

  /** Since when, or when next, the bucket has a token. */
  readyAt(bucket: number): number {
    return (this.fullAt[bucket] as number) + this.cost(bucket) - this.window - ROUNDING_MS;
  }

  /** Takes a token; false if there is none. */
  take(bucket: number, now: number): boolean {
    if (this.readyAt(bucket) > now) return false;
    this.fullAt[bucket] = Math.max(this.fullAt[bucket] as number, now) + this.cost(bucket);
    return true;
  }

  giveBack(bucket: number): void {
    this.fullAt[bucket] = (this.fullAt[bucket] as number) - this.cost(bucket);
  }

  private cost(bucket: number): number {
    return bucket === LOOKUPS ? this.interval / LOOKUP_FACTOR : this.interval;
  }
}
