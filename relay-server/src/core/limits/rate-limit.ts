/** Token bucket of one connection (section 3, "what is a request": default rate). */

export class RateBucket {
  #tokens: number;
  #filledAt: number;

  constructor(burst: number, now: number) {
    this.#tokens = burst;
    this.#filledAt = now;
  }

  /** Takes one message out of the bucket; false when it is empty. */
  take(perSecond: number, burst: number, now: number): boolean {
    const earned = (Math.max(0, now - this.#filledAt) * perSecond) / 1000;
    this.#tokens = Math.min(burst, this.#tokens + earned);
    this.#filledAt = now;
    if (this.#tokens < 1) {
      return false;
    }
    this.#tokens -= 1;
    return true;
  }
}
