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

// So that bundles without the table leave it out.
/* @__NO_SIDE_EFFECTS__ */
const entry = (
  meaning: string,
  http: number | null = null,
  close: number | null = null,
): ErrorEntry => ({ meaning, close, http });

const TABLE = {
  // On a link
  LIMIT_EXCEEDED: entry(
    "Session request limit reached; get a new session token with the account token.",
    401,
    1008,
  ),
  SESSION_EXPIRED: entry(
    "The session token is older than 24 hours; get a new one with the persistent token.",
    401,
    1008,
  ),
  AGENT_NOT_FOUND: entry("No agent of this account has that agent_id."),
  AGENT_OFFLINE: entry("The agent has no connection to the relay now."),
  UNKNOWN_SESSION: entry(
    "The relay knows no binding for this sid; send the same bytes in a relay envelope.",
  ),
  SID_IN_USE: entry(
    "Another connection or agent holds the first part of this sid; open with a fresh one.",
  ),
  REQUEST_ID_IN_USE: entry(
    "Another connection has a live request with this request_id; draw a new one.",
  ),
  SLOW_CONSUMER: entry("The receiver's queue is full; the message was dropped."),
  RATE_LIMITED: entry(
    "Too many messages a second, or requests a minute; this one was not carried out.",
    429,
  ),
  TOO_LARGE: entry("The message or body is larger than the limit.", 413),
  BAD_MESSAGE: entry("The message is not JSON, not text, or a field has the wrong type."),
  UNKNOWN_TYPE: entry("The relay knows no message of this type."),
  AUTH_REQUIRED: entry("Credentials are missing: authenticate first.", 401),
  AUTH_TIMEOUT: entry("No successful auth within 30 seconds.", null, 1008),
  REPLACED: entry(
    "Another connection authenticated as this agent; the newer one wins.",
    null,
    1008,
  ),
  TAKEOVER_LOOP: entry(
    "Two devices take this agent over from each other; one of them must stop.",
    null,
    1008,
  ),
  RESTARTING: entry("The relay restarts; connect again after reconnect_in seconds.", null, 1012),
  UNAVAILABLE: entry(
    "A part of the relay that this needs is unavailable or overloaded; try again later.",
    503,
  ),
  INTERNAL: entry("A fault of the relay; its log has the request id.", 500),
  // Credentials
  INVALID_TOKEN: entry("The credentials are not valid.", 401),
  INVALID_CREDENTIALS: entry("The user name, password or one-time code is not right.", 401),
  WRONG_TOKEN_KIND: entry("A secret of another kind belongs here; the text names both.", 401),
  LOCKED_OUT: entry(
    "Too many failed authentications from this address, or with this user name; wait retry_after seconds.",
    429,
    1008,
  ),
  REVOKED: entry(
    "The token, agent or user behind this connection was rotated, deleted or disabled.",
    null,
    1008,
  ),
  // REST only
  FORBIDDEN: entry("These credentials are valid but may not do this.", 403),
  NOT_FOUND: entry("Not found, or not owned by this account.", 404),
  CONFLICT: entry("That name or identifier is taken.", 409),
  METHOD_NOT_ALLOWED: entry("This path does not support that method.", 405),
  UNSUPPORTED_MEDIA_TYPE: entry("The operation does not take a body of this media type.", 415),
  BAD_REQUEST: entry("The request cannot be read.", 400),
  VALIDATION_FAILED: entry("The request has the wrong shape; errors[] says where.", 422),
  TOTP_ENROLMENT_REQUIRED: entry(
    "This relay requires two factors: enrol and confirm TOTP first.",
    403,
  ),
  IDEMPOTENCY_KEY_REUSED: entry("This Idempotency-Key came with another request before.", 422),
  IDEMPOTENCY_KEY_IN_USE: entry(
    "A request with this Idempotency-Key has begun and has no answer yet.",
    409,
  ),
  UNTRUSTED_SIGNATURE: entry(
    "None of the relay's release keys made this signature over this artifact.",
    422,
  ),
  RANGE_NOT_SATISFIABLE: entry("The range lies outside of the artifact.", 416),
  QUOTA_EXCEEDED: entry(
    "The account has reached its limit for these; remove some, or ask the operator.",
    403,
  ),
  UPGRADE_REQUIRED: entry("This path speaks WebSocket only.", 426),
};

export type ErrorCode = keyof typeof TABLE;

export const ERRORS: { readonly [code in ErrorCode]: ErrorEntry } = TABLE;

/** Whether a text received from the other side is a code in the table. */
export const isErrorCode = (text: unknown): text is ErrorCode =>
  typeof text === "string" && Object.prototype.hasOwnProperty.call(ERRORS, text);
