/**
 * Local tuning of the client. What the contract fixes is in protocol's spec.ts; these numbers may
 * change without a change on the wire.
 */

/** A call's deadline, unless the caller specifies another. */
export const CALL_TIMEOUT_MS = 30_000;
/** setTimeout's maximum on Node and in browsers; a longer timeout would fire at once. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Sent and unanswered calls, over all agents: the relay queues 1 MiB of answers for us. */
export const MAX_IN_FLIGHT = 256;
/** An answer that has not come by then does not count: it hardly comes at once with the others. */
export const OVERDUE_MS = 5_000;
/** The same for one agent; small devices handle calls one after another anyway. */
export const MAX_IN_FLIGHT_PER_AGENT = 32;
/**
 * Sessions with one agent that newer ones followed while calls or streams were left in them; small
 * boards have room for 8.
 */
export const MAX_RETIRING = 4;
/** Bytes in flight to one agent: a quarter of the relay's queue for it, which others share. */
export const MAX_BYTES_PER_AGENT = 262_144;
/** Calls not sent yet, over all agents; each holds its parameters in memory. */
export const MAX_QUEUED = 10_000;

/** Below the relay's 1,000 a second and bursts of 2,000, so that its limit is never reached. */
export const PACE_PER_SECOND = 900;
export const PACE_BURST = 1_500;

/** Bindings that we assume the relay holds: below its 1,024, so that ours are dropped first. */
export const KNOWN_BINDINGS = 1_000;

/** TCP, TLS and upgrade together; shorter than an agent's, which may be a slow board. */
export const CONNECT_TIMEOUT_MS = 20_000;
/** How long answers to earlier calls may still arrive on the link that was left. */
export const LEFT_LINK_MS = 5_000;
/** How long what is missing before a message on a renewed link may still come on the old one. */
export const RENEWED_LINK_MS = 1_000;
/** How often a stream looks whether a renewal is over that it waits for. */
export const RENEWAL_PACE_MS = 20;
/** Bytes that wait for earlier ones, for each session: what the relay queues for a link. */
export const MAX_EARLY_BYTES = 1_048_576;
/** Attempts to renew a session token on a second link, before it is renewed on the only one. */
export const RENEW_TRIES = 3;
/**
 * A link that lasted this long does not count as a failed attempt; shorter than an agent's, because
 * a person waits.
 */
export const STABLE_LINK_MS = 10_000;

/** With this little left of a session token, a new one is fetched when no call is in flight. */
export const TOKEN_RESERVE_REQUESTS = 1_000;
export const TOKEN_RESERVE_MS = 600_000;
/**
 * With this little left, calls wait until those in flight are done; keep-alives need some of it.
 */
export const TOKEN_LAST_REQUESTS = 200;
export const TOKEN_LAST_MS = 20_000;
/** How long they wait before those in flight are cut off. */
export const TOKEN_DRAIN_MS = 10_000;
/** Streams change links after receiving nothing for this long: longer than a round trip. */
export const STREAM_QUIET_MS = 500;
/**
 * If they did not drain in time and the token is still valid, the next attempt follows after this.
 */
export const MIGRATION_RETRY_MS = 60_000;

/** The least that a session may be used before a new one follows: opening takes two round trips. */
export const MIN_RENEW_MS = 60_000;
/** Well before the agent forgets an idle session (120 s), with a margin for differing clocks. */
export const SESSION_LAPSE_MS = 90_000;
/** An unanswered keep-alive ends its session. */
export const PING_TIMEOUT_MS = 15_000;
/**
 * An agent with a lost link is usually back by then; after that, calls in flight are not waited
 * for.
 */
export const OFFLINE_GRACE_MS = 2_000;
/** A subscriber's wait before it reopens after a failure: base * 2^n with jitter. */
export const RESUBSCRIBE_BASE_MS = 2_000;
/**
 * The longest such wait where the agent itself dropped the session: its events are missed
 * meanwhile.
 */
export const DROPPED_CEILING_MS = 4_000;
/** A subscriber's session that was open for this long was no failed attempt. */
export const STABLE_SESSION_MS = 10_000;

/** Bytes of one stream.data: small enough for other messages to come between. */
export const MAX_STREAM_CHUNK = 12_288;
/** How long a write that fills no chunk waits for the next one; a loop of writes is faster. */
export const WRITE_GATHER_MS = 2;
/** How long it waits for more credit. Agents that grant by the record need those bytes first. */
export const WRITE_CREDIT_MS = 1_000;
/** What a reader lets come before it has taken anything. */
export const STREAM_WINDOW_BYTES = 262_144;

/** Silence after which the agent may have forgotten a session of version "3" or "4". */
export const DOUBT_MS = 5_000;

/** UNAVAILABLE and the like: the same packets again after 200 ms, 400 ms, ... 10 s, 10 s. */
export const RESEND_BASE_MS = 200;
export const RESEND_CEILING_MS = 10_000;
