export {
  Agent,
  type AgentOptions,
  type CallOptions,
  Client,
  type ConnectOptions,
} from "./client.ts";
export type { LinkReport, Presence } from "./core/client-core.ts";
export { MAX_TIMEOUT_MS } from "./core/defaults.ts";
export {
  CALL_ERRORS,
  CallError,
  type CallErrorCode,
  type CallErrorDetails,
  type CallErrorEntry,
  type RemoteError,
} from "./errors.ts";
export {
  Fleet,
  type FleetCallOptions,
  type FleetOutcome,
  type OutcomeKind,
  outcomeOf,
  outcomesText,
  type RolloutOptions,
  rollOut,
} from "./fleet.ts";
export type { Link, LinkEvents, LinkPort, Log, Ports, Random, TimerPort } from "./ports.ts";
export { ReadStream } from "./read-stream.ts";
export { restartText } from "./restart-text.ts";
export type { SessionStreams, StreamOptions } from "./streams.ts";
export { relayUrl } from "./url.ts";
export { WriteStream } from "./write-stream.ts";
