/**
 * Local tuning of the agent; nothing here is part of the contract.
 *
 * [portable]
 */

/**
 * From connect to an open WebSocket; a board on a slow network needs most of it for TLS, so it is
 * longer than a client's.
 */
export const CONNECT_TIMEOUT_MS = 30000;

/** After this time without an answer, the driver is asked again to join its network. */
export const JOIN_TIMEOUT_MS = 60000;
/** After this many links in a row that did not open, the network is joined again. */
export const USELESS_LINKS = 5;

/**
 * After a link that lasted this long, the back-off starts over: longer than its longest wait, so
 * that a network that drops every link is not used more and more often. A client starts over
 * earlier, because a person waits.
 */
export const STABLE_MS = 60000;

/**
 * Waits for a person, after refused credentials or when another device took this agent over.
 * Doubling from 120 s keeps one stale device under the relay's 5 failures in 300 s.
 */
export const SLOW_MAX_MS = 3600000;

/** After a lockout, the devices behind one address return over this time, not all at once. */
export const SPREAD_MS = 120000;

/** A session token this close to its expiry is not used any more. */
export const SESSION_TOKEN_MARGIN_MS = 60000;

/**
 * Calls with handlers that have not settled; further ones are answered "busy" instead of piling up.
 */
export const MAX_CALLS_IN_FLIGHT = 32;
