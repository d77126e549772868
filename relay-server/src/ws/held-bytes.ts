/**
 * Bytes of messages that have begun and not ended, over all connections. What one connection may
 * hold is small, and thousands that have not authenticated could hold it at once.
 */

/**
 * A flood of those who wait costs so much; an `auth` is far below what each may hold in any case.
 */
const MAX_HELD_BYTES = 33_554_432;

export class HeldBytes {
  readonly #max: number;
  #held = 0;

  constructor(max = MAX_HELD_BYTES) {
    this.#max = max;
  }

  add(bytes: number): void {
    this.#held += bytes;
  }

  get isFull(): boolean {
    return this.#held > this.#max;
  }

  get held(): number {
    return this.#held;
  }
}
