/** For tests of other packages, in this repository only. */

export type { CallOutcome, CallRecord, CallRules } from "../oracle/calls.ts";
export { CallOracle } from "../oracle/calls.ts";
export { Stream } from "../random-streams.ts";
export { machine } from "../report/machine.ts";
export { STYLE } from "../report/style.ts";
export { escapeText, linear } from "../report/svg.ts";
