/** What a benchmark found, for people and for programs. */
export interface Report {
  /** Whether every figure is valid and within its limit. */
  readonly ok: boolean;
  readonly text: string;
  readonly json: object;
}
