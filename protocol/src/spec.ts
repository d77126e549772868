/**
 * Every number and pattern of the wire contract, with the section of protocol/README.md that
 * specifies it. Local tuning (back-off, queue depths of an SDK) is in a `defaults.ts` near its use.
 *
 * [portable] runs on Espruino unchanged: see docs/espruino.md for the dialect.
 */

// Section 1: secrets
export const LOGIN_TTL_S = 3600;
export const SESSION_TTL_S = 86400;
export const SESSION_MAX_REQUESTS = 10000;
/**
 * A retired credential's hash is kept this long, so that an outdated device is not mistaken for an
 * attacker.
 */
export const RETIRED_TOKEN_KEPT_S = 30 * 86400;
/** How long a request with an Idempotency-Key is remembered. */
export const IDEMPOTENCY_TTL_S = 86400;
/**
 * A secret other than a well-formed `e2e_` token must have this many characters, and is accepted
 * only on request.
 */
export const MIN_FOREIGN_SECRET_LENGTH = 32;
/** Compared byte for byte, unique on the relay. */
export const AGENT_ID_PATTERN = "^[A-Za-z0-9_-]{1,64}$";

// Section 2: packet
export const MAX_MESSAGE_BYTES = 65536;
export const MAX_PLAINTEXT_BYTES = 47000;
export const MAX_SEQ = 4294967295; // 2^32 - 1
export const TAG_BYTES = 16;
export const NONCE_BYTES = 12;
export const KEY_BYTES = 32;
/** `C`, and our `A`: base64url of 16 bytes. */
export const SID_PART_LENGTH = 22;
/** The first part of a sid, as the relay sees it. */
export const MAX_SID_PART_LENGTH = 64;
/** `p` of an opening or its answer: an empty plaintext, so 16 bytes of tag. */
export const EMPTY_P_LENGTH = 22;
/** An agent forgets a session that has accepted no packet for this long. */
export const SESSION_IDLE_MS = 120000;
/** An agent forgets a session this long after it stored it, whatever arrives: 24 h and 10 min. */
export const SESSION_MAX_AGE_MS = 87000000;
/** How late a request may run after its `expires`: a share of its session's age, and at most. */
export const EXPIRES_CLOCK_SHARE = 0.01;
export const EXPIRES_CLOCK_MS = 5000;
/** The JSON-RPC error of a request that came later: it did not run. */
export const TOO_LATE_CODE = -32003;
/** A client that wants to keep a session pings when it has been idle for this long. */
export const CLIENT_KEEPALIVE_MS = 45000;
/** A client renews its session after this age or this many packets sent. */
export const SESSION_RENEW_MS = 86400000;
export const SESSION_RENEW_PACKETS = 10000;
/** Under "3" and "4" where X25519 is native (section 2b). */
export const FORWARD_RENEW_MS = 3600000;
/** After a second answer a client waits a random time up to this before it opens again. */
export const REOPEN_DELAY_MS = 500;

// Section 3: relay connection
export const WSS_PATH = "/wss";
export const AUTH_TIMEOUT_MS = 30000;
export const MAX_AUTH_FAILURES_PER_CONNECTION = 3;
export const PING_INTERVAL_MS = 30000;
export const MISSED_PINGS = 2;
export const LOCKOUT_FAILURES = 5;
export const LOCKOUT_WINDOW_S = 300;
export const LOCKOUT_S = 600;
export const RATE_PER_SECOND = 1000;
export const RATE_BURST = 2000;
export const MAX_TAKEOVERS_PER_MINUTE = 5;
export const TAKEOVER_RETRY_S = 60;
export const MAX_UNREADABLE_IN_A_ROW = 3;
/** A message should be one frame; these limit the number and duration of its fragments. */
export const MAX_FRAGMENTS = 64;
export const FRAGMENTS_TIMEOUT_MS = 30000;
/**
 * Messages refused as RATE_LIMITED, and how many of them are forgotten per second: one more ends
 * the connection.
 */
export const MAX_RATE_REFUSALS = 10000;
export const RATE_REFUSALS_FORGOTTEN_PER_SECOND = 100;
export const OUTBOX_BYTES = 1048576;
export const SLOW_CONSUMER_CLOSE_MS = 30000;
export const MAX_REQUEST_ID_LENGTH = 64;
export const REQUEST_ID_TTL_MS = 60000;
/** Limit of `runtime` and `firmware_version` in an agent's `auth`: printable ASCII. */
export const MAX_REPORT_LENGTH = 64;
export const MAX_BINDINGS_PER_CONNECTION = 1024;
/** An SDK waits at least this long after refused credentials. */
export const REFUSED_WAIT_MS = 120000;

/** WebSocket close codes used on `/wss` (RFC 6455 section 7.4.1). */
export const CLOSE_NORMAL = 1000;
export const CLOSE_POLICY = 1008;
export const CLOSE_RESTART = 1012;
export const CLOSE_TRY_LATER = 1013;

// Section 4: REST
/** An agent's metadata as JSON text: the relay stores notes there, not documents. */
export const MAX_METADATA_BYTES = 8192;
