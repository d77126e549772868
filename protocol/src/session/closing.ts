/**
 * The last packet of a session (section 2, "Leaving"), from whichever side ends it.
 *
 * [portable]
 */

export const CLOSE_METHOD = "system.close";

/** Its plaintext. */
export const CLOSE_NOTICE = '{"jsonrpc":"2.0","method":"system.close"}';
