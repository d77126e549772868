/** What a history can break. */
export type Promised =
  /** A key and nonce seal one plaintext. */
  | "nonce"
  /** An agent accepts a packet once. */
  | "twice"
  /** So does a client. */
  | "takenTwice"
  /** No call runs after its `expires`. */
  | "late"
  /** No stored `A` is derived again. */
  | "derivedAgain"
  /** An epoch stores W while it is current, then W more: what it remembers is bounded. */
  | "tooMany"
  /** Under a fair relay every client is served. */
  | "served";
