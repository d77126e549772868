/**
 * What agents and clients do alike about a link to the relay; nothing here is part of the contract.
 *
 * [portable]
 */

/** The relay pings every 30 s: after two and a half periods of silence it is considered gone. */
export const LINK_SILENCE_MS = 75000;

/** Reconnecting: 1, 2, 4 ... 60 s, each less a random part of up to half. */
export const BACKOFF_FIRST_MS = 1000;
export const BACKOFF_MAX_MS = 60000;

/**
 * The longest wait that a relay may request (`retry_after`, `reconnect_in`); a timer of more than
 * 24.8 days would fire at once.
 */
export const MAX_ASKED_WAIT_MS = 3600000;
