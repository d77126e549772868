export { accountTokenProblem } from "./account-token.ts";
export { agentIdOf } from "./agent-id.ts";
export type { DeviceStart, LogAnswer, LogLine, RestartReason } from "./device-log.ts";
export type { ErrorCode, ErrorEntry } from "./errors.ts";
export { ERRORS, isErrorCode } from "./errors.ts";
export * from "./link/backoff.ts";
export * from "./link/defaults.ts";
export type { Failure } from "./link/failures.ts";
export {
  authFailure,
  LOCKED_OUT,
  LOST,
  linkFailure,
  REFUSED,
  RESTARTING,
} from "./link/failures.ts";
export type { LinkEvent, LinkState } from "./link/states.ts";
export { nextLinkState } from "./link/states.ts";
export type {
  Link,
  LinkEvents,
  LinkPort,
  Log,
  LogLevel,
  Random,
  TimerPort,
} from "./ports.ts";
export * from "./spec.ts";
export type { TokenKind, TokenReading } from "./tokens.ts";
export {
  makeToken,
  readToken,
  TOKEN_NAMES,
  TOKEN_PATTERN,
  TOKEN_PREFIXES,
  tokenKind,
  tokenProblem,
} from "./tokens.ts";
