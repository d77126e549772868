/**
 * What agents and clients do for each way in which a link can end: how they wait, whether waiting
 * helps at all, whether the session token is still useful, and what a person should check.
 *
 * [portable]
 */
import { own } from "../encoding/json.ts";
import { LOCKOUT_S, REFUSED_WAIT_MS, TAKEOVER_RETRY_S } from "../spec.ts";
import { BACKOFF_FIRST_MS } from "./defaults.ts";

/** First wait after being replaced: long enough that two devices do not fight at network speed. */
const REPLACED_FIRST_MS = 60000;

/**
 * When to connect again. `backoff`: soon, jittered and doubling to a minute; `slow`: a person is
 * needed; a client stops, an agent waits from `waitMs` doubling to an hour; `asked`: after the
 * delay that the relay requested, else `waitMs`; `spread`: the same, and up to two minutes more at
 * random; `never`: not with this configuration.
 */
type Course = "backoff" | "slow" | "asked" | "spread" | "never";

export interface Failure {
  readonly course: Course;
  /** Milliseconds; see Course. */
  readonly waitMs: number;
  /**
   * Whether the session token must not be used again: it was refused, or may have been the reason.
   */
  readonly dropsSession: boolean;
  /** For an agent's log and status: what happened, and what to do. */
  readonly advice: string;
}

/** The link broke, or the relay gave no known reason. */
export const LOST: Failure = {
  course: "backoff",
  waitMs: 0,
  dropsSession: false,
  advice: "connection lost: check that the relay is up and the network reaches it",
};

/** `auth_response` failed with an unknown code, or with none. */
export const REFUSED: Failure = {
  course: "slow",
  waitMs: REFUSED_WAIT_MS,
  dropsSession: true,
  advice: "the relay refuses this agent: compare agent_id and relay token with the relay's",
};

const UNAVAILABLE: Failure = {
  course: "backoff",
  waitMs: 0,
  dropsSession: false,
  advice: "the relay's store is not available: see the relay's log",
};

/** By code, for `auth_response` and for `error` messages that end a link. */
const FAILURES: { readonly [code: string]: Failure } = {
  INVALID_TOKEN: {
    course: "slow",
    waitMs: REFUSED_WAIT_MS,
    dropsSession: true,
    advice:
      "the relay does not know this relay token for this agent_id: it was rotated, deleted or mistyped; export it again",
  },
  WRONG_TOKEN_KIND: {
    course: "never",
    waitMs: 0,
    dropsSession: true,
    advice: "this is not an agent's relay token: configure the one that begins with agt_",
  },
  BAD_MESSAGE: REFUSED,
  // The relay asks for the same delay from everybody at this address.
  LOCKED_OUT: {
    course: "spread",
    waitMs: LOCKOUT_S * 1000,
    dropsSession: true,
    advice:
      "too many failed logins from this network address: look for a device with a wrong token",
  },
  RATE_LIMITED: {
    course: "asked",
    waitMs: REFUSED_WAIT_MS,
    dropsSession: true,
    advice: "many devices at this address log in at once: waiting",
  },
  TAKEOVER_LOOP: {
    course: "asked",
    waitMs: TAKEOVER_RETRY_S * 1000,
    dropsSession: false,
    advice: "another device uses this agent_id and both take it over: stop one of them",
  },
  REPLACED: {
    course: "slow",
    waitMs: REPLACED_FIRST_MS,
    dropsSession: false,
    advice: "another device connected as this agent: stop one of them",
  },
  REVOKED: {
    course: "backoff",
    waitMs: 0,
    dropsSession: true,
    advice: "the relay token was rotated, or the agent or its owner disabled: export it again",
  },
  SESSION_EXPIRED: {
    course: "backoff",
    waitMs: 0,
    dropsSession: true,
    advice: "the session token expired; logging in with the relay token",
  },
  LIMIT_EXCEEDED: {
    course: "backoff",
    waitMs: 0,
    dropsSession: true,
    advice: "the session token is used up; logging in with the relay token",
  },
  RESTARTING: {
    course: "asked",
    waitMs: BACKOFF_FIRST_MS,
    dropsSession: false,
    advice: "the relay restarts",
  },
  AUTH_TIMEOUT: LOST,
  QUOTA_EXCEEDED: {
    course: "asked",
    waitMs: 0,
    dropsSession: false,
    advice: "the account has its limit of connections: close some",
  },
  UNAVAILABLE,
  INTERNAL: UNAVAILABLE,
};

/** The relay lets nobody at this address log in for now. */
export const LOCKED_OUT = FAILURES.LOCKED_OUT as Failure;

/** The relay announced its restart and then closed. */
export const RESTARTING = FAILURES.RESTARTING as Failure;

const known = (code: string | null): Failure | null =>
  code === null ? null : ((own(FAILURES, code) as Failure | undefined) ?? null);

/** What a failed `auth_response` means. `code`: null if the relay gave none. */
export const authFailure = (code: string | null): Failure => {
  const failure = known(code);
  return failure === null ? REFUSED : failure;
};

/**
 * `error` codes after which the relay closes; not RESTARTING, because the relay may still drain.
 */
const ENDING = [
  "LOCKED_OUT",
  "TAKEOVER_LOOP",
  "REPLACED",
  "REVOKED",
  "SESSION_EXPIRED",
  "LIMIT_EXCEEDED",
  "AUTH_TIMEOUT",
];

/** How an `error` message ends the link; null if the link continues. */
export const linkFailure = (code: string): Failure | null =>
  ENDING.indexOf(code) >= 0 ? known(code) : null;
