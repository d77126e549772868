/** For tests of other packages, in this repository only. */

export { stopChild, watch, whenEnded } from "../base/processes.ts";
export { Stream } from "../base/random-streams.ts";
export { encodeFrame, OPCODE } from "../live/frames.ts";
export { liveLinkPort } from "../live/link.ts";
export { type RelayChild, startRelay } from "../live/relay-process.ts";
export { type Account, logIn, type MadeAgent, makeAgents } from "../live/rest.ts";
export type { CallOutcome, CallRecord, CallRules } from "../oracle/calls.ts";
export { CallOracle } from "../oracle/calls.ts";
export { SerialOracle, SerialUser } from "../oracle/serial.ts";
export { machine } from "../report/machine.ts";
export { STYLE } from "../report/style.ts";
export { escapeText, linear } from "../report/svg.ts";
export { loadScenario } from "../scenario/load.ts";
export { loadPrograms } from "../virtual/programs.ts";
export { runVirtual } from "../virtual/run.ts";
