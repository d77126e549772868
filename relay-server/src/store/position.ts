/** The position after which a page of a list begins, in the list's order of time. */
export interface Position {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Orders rows of the same millisecond. */
  readonly id: string;
}
