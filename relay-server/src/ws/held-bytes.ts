/**
 * Bytes of messages that have begun and not ended, over all connections. What one connection may
 * hold is small, and thousands that have not authenticated could hold it at once.
 */

/**
 * The most that all unauthenticated connections may hold together. Beyond it each may still hold
 * `FREE_BYTES`, enough for an `auth`.
 */
const MAX_HELD_BYTES = 33_554_432;
/**
 * An `auth` that arrives in two segments fits; a connection that says no more than that costs
 * little.
 */
const FREE_BYTES = 1024;

export class HeldBytes {
  readonly #max: number;
  #held = 0;

  constructor(max = MAX_HELD_BYTES) {
    this.#max = max;
  }

  add(bytes: number): void {
    this.#held += bytes;
  }

  /**
   * Whether a connection may hold so many bytes, which have been added. Who is `known` has
   * authenticated, and so is not subject to the bound over all.
   */
  allows(bytes: number, known: boolean): boolean {
    return known || bytes <= FREE_BYTES || this.#held <= this.#max;
  }

  get held(): number {
    return this.#held;
  }
}
