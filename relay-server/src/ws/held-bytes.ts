/**
 * Bytes of messages that have begun and not ended, over all connections. One connection may hold
 * little, but thousands of unauthenticated ones could do so at once.
 */

/**
 * The most that all unauthenticated connections may hold together. Beyond it each may still hold
 * `FREE_BYTES`, enough for an `auth`.
 */
const MAX_HELD_BYTES = 33_554_432;
/**
 * Enough for an `auth` that arrives in two segments; a connection that sends no more than that
 * costs little.
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
   * Whether a connection may hold this many bytes, which have already been added. A `known` peer
   * has authenticated, and so is not subject to the common limit.
   */
  allows(bytes: number, known: boolean): boolean {
    return known || bytes <= FREE_BYTES || this.#held <= this.#max;
  }

  get held(): number {
    return this.#held;
  }
}
