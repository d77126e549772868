/** For tests of other packages, in this repository only. */

export type { CallOutcome, CallRecord, CallRules } from "../oracle/calls.ts";
export { CallOracle } from "../oracle/calls.ts";
export { type Draw, seeded } from "../seeded.ts";
