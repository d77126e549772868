/**
 * The rules of section 2 whose absence the search and the model (protocol/models/sessions.m) must
 * notice. A rule is left out of the model by its constant, and of the code by patches.
 */
import type { Patch } from "../adversary/mutants.ts";
import type { Bounds } from "./moves.ts";
import type { Promised } from "./promises.ts";

export interface Rule {
  /** The constant of the model; null where the model does not have it. */
  readonly constant: string | null;
  readonly says: string;
  readonly patches: readonly Patch[];
  /** W, with which leaving it out shows. */
  readonly window: number;
  /** What breaks first. */
  readonly breaks: Promised;
}

/** Moves in a history; set ORDERS_DEPTH to search further. */
export const DEPTH = Number(process.env.ORDERS_DEPTH ?? 11);

/** Where a rule is left out. */
export const boundsOf = (window: number): Bounds => ({
  ...{ clients: 2, calls: 1, restarts: 1, waits: 1 },
  ...{ window, places: 4, collide: false },
});

/** Where all rules are kept. */
export const SEARCHES: readonly Bounds[] = [
  boundsOf(1),
  boundsOf(2),
  { ...boundsOf(2), clients: 3 },
  { ...boundsOf(1), places: 1 },
  { ...boundsOf(1), collide: true },
  { ...boundsOf(2), collide: true },
];

const AGENT = "protocol/src/session/agent.ts";
const CLIENT = "protocol/src/session/client.ts";
const DISPATCH = "agent-sdk/src/core/dispatch.ts";

/** In the look for the epoch that may store a session. */
const IS_NOT_SPENT = "epoch.spent.indexOf(digestOf(part)) < 0";

const patch = (file: string, find: string, replace: string): Patch => ({ file, find, replace });

export const RULES: readonly Rule[] = [
  {
    constant: "RAISE",
    says: "the boot count is raised at every start",
    patches: [patch(AGENT, "      options.bootCount,\n", "      1,\n")],
    ...{ window: 1, breaks: "derivedAgain" },
  },
  {
    constant: "MOVE",
    says: "the epoch is moved when it is full",
    patches: [patch(AGENT, "if (epoch === this.epochs[0]) this.moveEpoch();\n      else", "")],
    ...{ window: 1, breaks: "tooMany" },
  },
  {
    constant: "SPENT",
    says: "an epoch remembers what it stored",
    patches: [patch(AGENT, IS_NOT_SPENT, `(epoch === this.epochs[0] || ${IS_NOT_SPENT})`)],
    ...{ window: 2, breaks: "twice" },
  },
  {
    constant: "SPENT_BEFORE",
    says: "so does the epoch before it",
    patches: [patch(AGENT, IS_NOT_SPENT, `(epoch !== this.epochs[0] || ${IS_NOT_SPENT})`)],
    ...{ window: 1, breaks: "twice" },
  },
  {
    constant: "ERASE",
    says: "the epoch before that one is erased",
    patches: [
      // Its digests go all the same: there is room for two epochs' only.
      patch(
        AGENT,
        "if (this.epochs.length > 1) (this.epochs.pop() as Epoch).secret.fill(0);",
        'for (const old of this.epochs.slice(1)) old.spent = "";',
      ),
      patch(AGENT, 'spent: "" }, current];', 'spent: "" }].concat(this.epochs);'),
    ],
    ...{ window: 1, breaks: "twice" },
  },
  {
    constant: "MOVE_SPENT",
    says: "the epoch is moved before a spent C that is not held is answered",
    patches: [patch(AGENT, "      this.moveEpoch();\n      part =", "      part =")],
    ...{ window: 2, breaks: "derivedAgain" },
  },
  {
    constant: "MARK",
    says: "an agent accepts only a greater seq",
    patches: [patch(AGENT, 'if (packet.seq <= held.received) return this.refuse("replay");', "")],
    ...{ window: 1, breaks: "twice" },
  },
  {
    constant: null,
    says: "a client accepts only a greater seq",
    patches: [patch(CLIENT, 'if (packet.seq <= this.received) return this.refuse("replay");', "")],
    ...{ window: 1, breaks: "takenTwice" },
  },
  {
    constant: null,
    says: "an agent takes a new seq for every seal",
    patches: [patch(AGENT, "++held.sent,", "(held.sent = 1),")],
    ...{ window: 1, breaks: "nonce" },
  },
  {
    constant: null,
    says: "a client takes a new seq for every seal",
    patches: [patch(CLIENT, "    this.sent++;\n", "    this.sent = 1;\n")],
    ...{ window: 1, breaks: "nonce" },
  },
  {
    constant: "EXPIRES",
    says: "a call that is too late does not run",
    patches: [patch(DISPATCH, "isInteger(expires) && isLate(expires, ageMs)", "false")],
    ...{ window: 1, breaks: "late" },
  },
  {
    constant: "HELD",
    says: "a C that is held is answered with the A of its session, and never stored again",
    patches: [
      patch(
        AGENT,
        "if (session.first === first) return session;",
        "if (first === null) return session;",
      ),
    ],
    ...{ window: 1, breaks: "served" },
  },
  {
    constant: "ABANDON",
    says: "a client gives up its C at another A",
    patches: [
      patch(CLIENT, 'return this.abandon("otherAnswer", now);', 'return this.refuse("repeat");'),
    ],
    ...{ window: 1, breaks: "served" },
  },
];
