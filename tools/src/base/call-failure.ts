/** The exit code for each CallError of the client SDK. */
import { CallError, type CallErrorCode } from "@blindrelay/client-sdk";
import { Failure, type FailureKind } from "@blindrelay/protocol/command-line";
import { jsonText, oneLine } from "./output.ts";

const KINDS: { readonly [code in CallErrorCode]: FailureKind } = {
  REMOTE: "agentError",
  BAD_ANSWER: "agentError",
  AGENT_OFFLINE: "unreachable",
  UNREACHABLE: "unreachable",
  BUSY: "unreachable",
  AGENT_NOT_FOUND: "refused",
  REFUSED: "refused",
  TIMED_OUT: "timeout",
  UNPROVEN: "timeout",
  OUTCOME_UNKNOWN: "timeout",
  BAD_ARGUMENT: "usage",
  TOO_LARGE: "usage",
  ABORTED: "fault",
  CLOSED: "fault",
};

/** What a call to an agent that restarts ends with. */
const PASSING = ["AGENT_OFFLINE", "TIMED_OUT", "OUTCOME_UNKNOWN", "UNREACHABLE", "BUSY"];

export const isPassing = (error: unknown): error is CallError =>
  error instanceof CallError && PASSING.includes(error.code);

/** The failure to end with. An agent's own error is printed as its JSON-RPC error object. */
export const callFailure = (error: CallError): Failure =>
  new Failure(
    KINDS[error.code],
    error.remote === undefined ? oneLine(error.message) : jsonText(error.remote),
    error,
  );

/** The same for a CallError; everything else as it is. */
export const asFailure = (error: unknown): unknown =>
  error instanceof CallError ? callFailure(error) : error;
