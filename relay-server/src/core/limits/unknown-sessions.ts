/**
 * Well-formed session tokens that the store does not know (section 3, "lockout scope"), by address.
 * After a restored backup a whole site presents them; nobody can guess 256 bits, so they count
 * towards no lockout. Many at once are spread over two minutes.
 */
import { addressKey } from "./address-group.ts";

const PERIOD_MS = 60_000;
const MAX_PER_PERIOD = 60;
const SPREAD_S = 120;
/** Has no divisor in common with SPREAD_S, so that successive ones are far apart. */
const STEP_S = 37;
/** About 2 MB; the address that has been counted for the longest time is evicted first. */
const MAX_ADDRESSES = 10_000;

export class UnknownSessions {
  readonly #counts = new Map<string, { sinceMs: number; count: number }>();

  /** Counts one; returns `retry_after` in seconds, 0 while there are few. */
  count(address: string, nowMs: number): number {
    const key = addressKey(address);
    let entry = this.#counts.get(key);
    if (entry === undefined || nowMs - entry.sinceMs >= PERIOD_MS) {
      entry = { sinceMs: nowMs, count: 0 };
      this.#counts.delete(key);
      this.#counts.set(key, entry);
      const [oldest] = this.#counts.keys();
      if (this.#counts.size > MAX_ADDRESSES) this.#counts.delete(oldest as string);
    }
    entry.count += 1;
    const excess = entry.count - MAX_PER_PERIOD;
    return excess <= 0 ? 0 : ((excess * STEP_S) % SPREAD_S) + 1;
  }

  get size(): number {
    return this.#counts.size;
  }
}
