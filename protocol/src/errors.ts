/**
 * The one table of errors (sections 3 and 4 of the contract): the meaning of a code, the WebSocket
 * close code that follows it, and its HTTP status. What agents and clients do when one ends a link
 * is in link/failures.ts.
 *
 * [portable]
 */

export interface ErrorEntry {
  readonly meaning: string;
  /** The close code that follows at once; null: the connection stays open. */
  readonly close: number | null;
  /** The HTTP status for this code; null: it does not occur over REST. */
  readonly http: number | null;
}

export type ErrorCode =
  | "LIMIT_EXCEEDED"
  | "SESSION_EXPIRED"
  | "AGENT_NOT_FOUND"
  | "AGENT_OFFLINE"
  | "UNKNOWN_SESSION"
  | "SID_IN_USE"
  | "REQUEST_ID_IN_USE"
  | "SLOW_CONSUMER"
  | "RATE_LIMITED"
  | "TOO_LARGE"
  | "BAD_MESSAGE"
  | "UNKNOWN_TYPE"
  | "AUTH_REQUIRED"
  | "AUTH_TIMEOUT"
  | "REPLACED"
  | "TAKEOVER_LOOP"
  | "RESTARTING"
  | "UNAVAILABLE"
  | "INTERNAL"
  | "INVALID_TOKEN"
  | "INVALID_CREDENTIALS"
  | "WRONG_TOKEN_KIND"
  | "LOCKED_OUT"
  | "REVOKED"
  | "FORBIDDEN"
  | "NOT_FOUND"
  | "CONFLICT"
  | "METHOD_NOT_ALLOWED"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "BAD_REQUEST"
  | "VALIDATION_FAILED"
  | "TOTP_ENROLMENT_REQUIRED"
  | "IDEMPOTENCY_KEY_REUSED"
  | "IDEMPOTENCY_KEY_IN_USE"
  | "UNTRUSTED_SIGNATURE"
  | "RANGE_NOT_SATISFIABLE"
  | "UPGRADE_REQUIRED"
  | "QUOTA_EXCEEDED";

export const ERRORS: { readonly [code in ErrorCode]: ErrorEntry } = {
  // On a link
  LIMIT_EXCEEDED: {
    meaning: "Session request limit reached; get a new session token with the account token.",
    close: 1008,
    http: 401,
  },
  SESSION_EXPIRED: {
    meaning: "The session token is older than 24 hours; get a new one with the persistent token.",
    close: 1008,
    http: 401,
  },
  AGENT_NOT_FOUND: {
    meaning: "No agent of this account has that agent_id.",
    close: null,
    http: null,
  },
  AGENT_OFFLINE: {
    meaning: "The agent has no connection to the relay now.",
    close: null,
    http: null,
  },
  UNKNOWN_SESSION: {
    meaning: "The relay knows no binding for this sid; send the same bytes in a relay envelope.",
    close: null,
    http: null,
  },
  SID_IN_USE: {
    meaning: "Another connection or agent holds the first part of this sid; open with a fresh one.",
    close: null,
    http: null,
  },
  REQUEST_ID_IN_USE: {
    meaning: "Another connection has a live request with this request_id; draw a new one.",
    close: null,
    http: null,
  },
  SLOW_CONSUMER: {
    meaning: "The receiver's queue is full; the message was dropped.",
    close: null,
    http: null,
  },
  RATE_LIMITED: {
    meaning: "Too many messages a second, or requests a minute; this one was not carried out.",
    close: null,
    http: 429,
  },
  TOO_LARGE: {
    meaning: "The message or body is larger than the limit.",
    close: null,
    http: 413,
  },
  BAD_MESSAGE: {
    meaning: "The message is not JSON, not text, or a field has the wrong type.",
    close: null,
    http: null,
  },
  UNKNOWN_TYPE: {
    meaning: "The relay knows no message of this type.",
    close: null,
    http: null,
  },
  AUTH_REQUIRED: {
    meaning: "Credentials are missing: authenticate first.",
    close: null,
    http: 401,
  },
  AUTH_TIMEOUT: {
    meaning: "No successful auth within 30 seconds.",
    close: 1008,
    http: null,
  },
  REPLACED: {
    meaning: "Another connection authenticated as this agent; the newer one wins.",
    close: 1008,
    http: null,
  },
  TAKEOVER_LOOP: {
    meaning: "Two devices take this agent over from each other; one of them must stop.",
    close: 1008,
    http: null,
  },
  RESTARTING: {
    meaning: "The relay restarts; connect again after reconnect_in seconds.",
    close: 1012,
    http: null,
  },
  UNAVAILABLE: {
    meaning: "A part of the relay that this needs is unavailable or overloaded; try again later.",
    close: null,
    http: 503,
  },
  INTERNAL: {
    meaning: "A fault of the relay; its log has the request id.",
    close: null,
    http: 500,
  },
  // Credentials
  INVALID_TOKEN: {
    meaning: "The credentials are not valid.",
    close: null,
    http: 401,
  },
  INVALID_CREDENTIALS: {
    meaning: "The user name, password or one-time code is not right.",
    close: null,
    http: 401,
  },
  WRONG_TOKEN_KIND: {
    meaning: "A secret of another kind belongs here; the text names both.",
    close: null,
    http: 401,
  },
  LOCKED_OUT: {
    meaning:
      "Too many failed authentications from this address, or with this user name; wait retry_after seconds.",
    close: 1008,
    http: 429,
  },
  REVOKED: {
    meaning: "The token, agent or user behind this connection was rotated, deleted or disabled.",
    close: 1008,
    http: null,
  },
  // REST only
  FORBIDDEN: {
    meaning: "These credentials are valid but may not do this.",
    close: null,
    http: 403,
  },
  NOT_FOUND: {
    meaning: "Not found, or not owned by this account.",
    close: null,
    http: 404,
  },
  CONFLICT: {
    meaning: "That name or identifier is taken.",
    close: null,
    http: 409,
  },
  METHOD_NOT_ALLOWED: {
    meaning: "This path does not support that method.",
    close: null,
    http: 405,
  },
  UNSUPPORTED_MEDIA_TYPE: {
    meaning: "The operation does not take a body of this media type.",
    close: null,
    http: 415,
  },
  BAD_REQUEST: {
    meaning: "The request cannot be read.",
    close: null,
    http: 400,
  },
  VALIDATION_FAILED: {
    meaning: "The request has the wrong shape; errors[] says where.",
    close: null,
    http: 422,
  },
  TOTP_ENROLMENT_REQUIRED: {
    meaning: "This relay requires two factors: enrol and confirm TOTP first.",
    close: null,
    http: 403,
  },
  IDEMPOTENCY_KEY_REUSED: {
    meaning: "This Idempotency-Key came with another request before.",
    close: null,
    http: 422,
  },
  IDEMPOTENCY_KEY_IN_USE: {
    meaning: "A request with this Idempotency-Key has begun and has no answer yet.",
    close: null,
    http: 409,
  },
  UNTRUSTED_SIGNATURE: {
    meaning: "None of the relay's release keys made this signature over this artifact.",
    close: null,
    http: 422,
  },
  RANGE_NOT_SATISFIABLE: {
    meaning: "The range lies outside of the artifact.",
    close: null,
    http: 416,
  },
  QUOTA_EXCEEDED: {
    meaning: "The account has reached its limit for these; remove some, or ask the operator.",
    close: null,
    http: 403,
  },
  UPGRADE_REQUIRED: {
    meaning: "This path speaks WebSocket only.",
    close: null,
    http: 426,
  },
};

/** Whether a text received from the other side is a code in the table. */
export const isErrorCode = (text: unknown): text is ErrorCode =>
  typeof text === "string" && Object.prototype.hasOwnProperty.call(ERRORS, text);
