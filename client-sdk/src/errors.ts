/** How a call can fail: one class and one table, which README.md contains. */

export interface CallErrorEntry {
  readonly meaning: string;
  /**
   * Whether repeating the call may help and cannot execute it twice. `if-safe`: true for calls that
   * are marked idempotent or were never sent.
   */
  readonly retryable: boolean | "if-safe";
}

export const CALL_ERRORS = {
  REMOTE: {
    meaning: "The agent answered with an error; `remote` holds its code, message and data.",
    retryable: false,
  },
  BAD_ANSWER: {
    meaning:
      "The agent's verified answer is not a JSON-RPC response, or has a number that JavaScript cannot hold, or more than 500 levels.",
    retryable: false,
  },
  TIMED_OUT: {
    meaning:
      "No verified answer before the deadline, and the agent may have executed a sent call; or it refused the call as too late, and did not.",
    retryable: "if-safe",
  },
  OUTCOME_UNKNOWN: {
    meaning: "The session or link ended while the call was in flight; it may have been executed.",
    retryable: "if-safe",
  },
  UNPROVEN: {
    meaning:
      "Whoever answered has the agent's secret, but not the device key that this client expects; nothing was sent.",
    retryable: false,
  },
  AGENT_OFFLINE: {
    meaning: "The relay says, unproven, that the agent is not connected.",
    retryable: "if-safe",
  },
  AGENT_NOT_FOUND: {
    meaning: "The relay knows no such agent of this account.",
    retryable: false,
  },
  UNREACHABLE: {
    meaning: "No connection to the relay; the call was not sent.",
    retryable: true,
  },
  REFUSED: {
    meaning: "The relay refused the credentials, or the address is locked out; nothing was sent.",
    retryable: false,
  },
  BUSY: {
    meaning: "Too many calls wait already; this one was not taken.",
    retryable: true,
  },
  ABORTED: {
    meaning: "The caller's AbortSignal fired; the agent may have executed a sent call.",
    retryable: false,
  },
  CLOSED: {
    meaning: "The client was closed; the agent may have executed a sent call.",
    retryable: false,
  },
  TOO_LARGE: {
    meaning: "The call does not fit into one packet (47,000 bytes of plaintext).",
    retryable: false,
  },
  BAD_ARGUMENT: {
    meaning: "A misuse on this side: method, params, agent id, secret or option.",
    retryable: false,
  },
} as const satisfies Record<string, CallErrorEntry>;

export type CallErrorCode = keyof typeof CALL_ERRORS;

/** An agent's JSON-RPC error object. */
export interface RemoteError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export interface CallErrorDetails {
  readonly cause?: unknown;
  readonly remote?: RemoteError;
  /** The relay's own code, if it gave one (ERRORS in @blindrelay/protocol). */
  readonly relayCode?: string;
  /**
   * For codes whose table entry is `if-safe`: whether this call is safe. Overrides other entries.
   */
  readonly retryable?: boolean;
}

/** Why a call, or the connection, failed. */
export class CallError extends Error {
  readonly code: CallErrorCode;
  /** Whether repeating the call may help and cannot execute it twice. */
  readonly retryable: boolean;
  readonly remote: RemoteError | undefined;
  readonly relayCode: string | undefined;

  constructor(code: CallErrorCode, message: string, details: CallErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "CallError";
    this.code = code;
    this.retryable = details.retryable ?? CALL_ERRORS[code].retryable === true;
    this.remote = details.remote;
    this.relayCode = details.relayCode;
  }
}
