import { describe, expect, it } from "vitest";
import { type LinkEvent, type LinkState, nextLinkState } from "./states.ts";

const STATES: LinkState[] = [
  "idle",
  "connecting",
  "authenticating",
  "online",
  "waiting",
  "refused",
  "stopped",
];
const EVENTS: LinkEvent[] = ["start", "opened", "accepted", "lost", "elapsed", "refused", "stop"];

/** The whole table again, in the opposite direction: event, from, to. */
const ALLOWED: [LinkEvent, LinkState, LinkState][] = [
  ["start", "idle", "connecting"],
  ["opened", "connecting", "authenticating"],
  ["accepted", "authenticating", "online"],
  ["lost", "connecting", "waiting"],
  ["lost", "authenticating", "waiting"],
  ["lost", "online", "waiting"],
  ["elapsed", "waiting", "connecting"],
  ["refused", "authenticating", "refused"],
  ["refused", "online", "refused"],
  ...STATES.filter((state) => state !== "stopped").map(
    (state): [LinkEvent, LinkState, LinkState] => ["stop", state, "stopped"],
  ),
];

describe("the link's states", () => {
  it.each(EVENTS.flatMap((event) => STATES.map((state) => [event, state] as const)))(
    "%s in %s leads where the diagram shows, or nowhere",
    (event, state) => {
      const row = ALLOWED.find(([e, s]) => e === event && s === state);
      expect(nextLinkState(state, event)).toBe(row?.[2] ?? null);
    },
  );
});
