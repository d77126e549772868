/**
 * The life of an agent's link to the relay, as a table `state x event -> state`.
 *
 *   stopped --start--> connecting --opened--> authenticating --accepted--> online
 *                        ^   |                     |    |                  |   |
 *                        |   +-------- lost -------+----|------ lost ------+   |
 *                    elapsed               |            +----- refused --------+
 *                        |                 v                     v
 *                        +-------------- waiting              refused
 *
 * Authenticating may fall back from a session token to the relay token on the same link. `lost`
 * covers every end that waiting can cure, `refused` those that only a person can. `stop` is allowed
 * everywhere. What is not in the table is a mistake of ours and throws.
 *
 * [portable]
 */

export type LinkState =
  | "stopped"
  | "connecting"
  | "authenticating"
  | "online"
  | "waiting"
  | "refused";

export type LinkEvent =
  | "start"
  | "opened"
  | "fallback"
  | "accepted"
  | "lost"
  | "elapsed"
  | "refused"
  | "stop";

export const LINK_STATES: {
  readonly [state in LinkState]: { readonly [event in LinkEvent]?: LinkState };
} = {
  stopped: { start: "connecting", stop: "stopped" },
  connecting: { opened: "authenticating", lost: "waiting", stop: "stopped" },
  authenticating: {
    fallback: "authenticating",
    accepted: "online",
    lost: "waiting",
    refused: "refused",
    stop: "stopped",
  },
  online: { lost: "waiting", refused: "refused", stop: "stopped" },
  waiting: { elapsed: "connecting", stop: "stopped" },
  refused: { stop: "stopped" },
};

/** The state that follows; throws an Error where the table has none. */
export const nextLinkState = (state: LinkState, event: LinkEvent): LinkState => {
  const next = LINK_STATES[state][event];
  if (next === undefined) throw new Error(`an agent that is ${state} cannot take "${event}"`);
  return next;
};
