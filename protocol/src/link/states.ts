/**
 * The life of a link to the relay, the same for an agent and a client, as a table
 * `state x event -> state`.
 *
 *   idle --start--> connecting --opened--> authenticating --accepted--> online
 *                     ^   |                     |    |                  |   |
 *                     |   +-------- lost -------+----|------ lost ------+   |
 *                 elapsed               |            +----- refused --------+
 *                     |                 v                     v
 *                     +-------------- waiting              refused
 *
 * `lost` covers every end after which waiting helps, `refused` those that need a person. `stop`
 * leads to `stopped` from every state. An event that the table does not list, such as a late frame
 * or an outdated timer, is ignored.
 *
 * [portable]
 */

export type LinkState =
  | "idle"
  | "connecting"
  | "authenticating"
  | "online"
  | "waiting"
  | "refused"
  | "stopped";

export type LinkEvent = "start" | "opened" | "accepted" | "lost" | "elapsed" | "refused" | "stop";

const LINK_STATES: {
  readonly [state in LinkState]: { readonly [event in LinkEvent]?: LinkState };
} = {
  idle: { start: "connecting", stop: "stopped" },
  connecting: { opened: "authenticating", lost: "waiting", stop: "stopped" },
  authenticating: { accepted: "online", lost: "waiting", refused: "refused", stop: "stopped" },
  online: { lost: "waiting", refused: "refused", stop: "stopped" },
  waiting: { elapsed: "connecting", stop: "stopped" },
  refused: { stop: "stopped" },
  stopped: {},
};

/** The next state; null if the event has no effect in this state. */
export const nextLinkState = (state: LinkState, event: LinkEvent): LinkState | null => {
  const next = LINK_STATES[state][event];
  return next === undefined ? null : next;
};
