/** How a user can fix each error of REST, of the link and of a call. */

const FIXES: Readonly<Record<string, string>> = {
  INVALID_CREDENTIALS: "Check the spelling, and wait for a fresh code before you try again.",
  INVALID_TOKEN: "Log in again.",
  SESSION_EXPIRED: "Log in again.",
  LIMIT_EXCEEDED: "Log in again: a session carries 10,000 requests.",
  REVOKED: "Log in again; if that is refused too, ask an admin of this relay.",
  LOCKED_OUT: "Wait ten minutes; every further failure restarts the wait.",
  FORBIDDEN: "Ask an admin of this relay.",
  TOTP_ENROLMENT_REQUIRED: "Log in again without a code: the page sets up the second factor.",
  RATE_LIMITED: "Wait a moment, then try again.",
  UNAVAILABLE: "Try again in a minute; the relay's log names the cause.",
  RESTARTING: "Nothing to do: the page connects again by itself.",
  INTERNAL: "Tell the relay's operator: its log has the details.",
  UNREACHABLE: "Check your network, and that the relay runs; the page keeps trying.",
  REFUSED: "Log in again.",
  REMOTE: "The agent understood the call and declined it: see its message and data.",
  BAD_ANSWER: "Update the agent's firmware or its SDK: what it sent is no answer.",
  TIMED_OUT:
    "If it never answers, the secret or packet version is wrong: compare it with the device's. If it sometimes answers, give it more time. If it did not run, call again.",
  OUTCOME_UNKNOWN: "Look at the device's state before you call again: it may have done it.",
  AGENT_OFFLINE: "Check the device's power and network; its row says when it was last seen.",
  CONFLICT: "Choose another name or identifier.",
  AGENT_NOT_FOUND: "It was deleted, or belongs to another account: look at the list of agents.",
  BUSY: "Wait for calls to end, then try again.",
  CLOSED: "Log in again.",
  TOO_LARGE: "Send less at once: a call holds at most 47,000 bytes.",
};

/** The fix, or an empty string if the message is enough. */
export const fixOf = (code: string): string =>
  (Object.hasOwn(FIXES, code) ? FIXES[code] : "") ?? "";

export const waitText = (seconds: number): string =>
  seconds < 90 ? `${seconds} s` : `${Math.ceil(seconds / 60)} minutes`;
