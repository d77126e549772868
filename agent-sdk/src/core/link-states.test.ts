import { describe, expect, it } from "vitest";
import { type LinkEvent, type LinkState, nextLinkState } from "./link-states.ts";

const STATES: LinkState[] = [
  "stopped",
  "connecting",
  "authenticating",
  "online",
  "waiting",
  "refused",
];
const EVENTS: LinkEvent[] = [
  "start",
  "opened",
  "fallback",
  "accepted",
  "lost",
  "elapsed",
  "refused",
  "stop",
];

/** The whole table once more, written the other way round: event, from, to. */
const ALLOWED: [LinkEvent, LinkState, LinkState][] = [
  ["start", "stopped", "connecting"],
  ["opened", "connecting", "authenticating"],
  ["fallback", "authenticating", "authenticating"],
  ["accepted", "authenticating", "online"],
  ["lost", "connecting", "waiting"],
  ["lost", "authenticating", "waiting"],
  ["lost", "online", "waiting"],
  ["elapsed", "waiting", "connecting"],
  ["refused", "authenticating", "refused"],
  ["refused", "online", "refused"],
  ...STATES.map((state): [LinkEvent, LinkState, LinkState] => ["stop", state, "stopped"]),
];

describe("the link's states", () => {
  it.each(EVENTS.flatMap((event) => STATES.map((state) => [event, state] as const)))(
    "%s in %s goes where the drawing says, or throws",
    (event, state) => {
      const row = ALLOWED.find(([e, s]) => e === event && s === state);
      if (row) expect(nextLinkState(state, event)).toBe(row[2]);
      else expect(() => nextLinkState(state, event)).toThrow(state);
    },
  );
});
