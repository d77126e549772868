/** A link that moves again while the one that it left is still open. */
import { MovingLink } from "@blindrelay/protocol/moving-link";
import { expect, test } from "vitest";
import type { LinkEvents } from "../ports.ts";
import { VirtualClock } from "../testing/clock.ts";

const LEAVE_MS = 5_000;

test("a link that was left is left for good before another one is dialled", async () => {
  const clock = new VirtualClock();
  const links: { events: LinkEvents; closed: string | null }[] = [];
  const told: string[] = [];
  const connect = (_url: string, events: LinkEvents) => {
    const one: (typeof links)[number] = { events, closed: null };
    links.push(one);
    return {
      send: () => undefined,
      close: (_code: number, reason: string) => {
        one.closed = reason;
      },
    };
  };
  const ports = { link: { connect }, timer: clock, log: () => undefined };
  const link = new MovingLink("ws://relay/wss", ports, {
    takesOver: false,
    login: () => undefined,
    answered: (text) => (text === "yes" ? "accepted" : null),
    moving: () => undefined,
    isDrained: () => true,
    moved: () => LEAVE_MS,
    left: () => told.push("left"),
    opened: () => undefined,
    received: (text) => told.push(text),
    receivedLeft: (text) => told.push(text),
    closed: () => told.push("closed"),
  });
  const open = (at: number): void => {
    links[at]?.events.opened();
    links[at]?.events.received("yes");
  };
  links[0]?.events.opened();
  link.moveIn(0);
  await clock.run(0);
  open(1);
  await clock.run(100);
  expect(link.moveIn(LEAVE_MS * 2)).toBe(true);
  links[0]?.events.received("late");
  expect([links[0]?.closed, told]).toEqual([null, ["late"]]);
  await clock.run(LEAVE_MS * 2);
  expect([links.length, links[0]?.closed, told]).toEqual([3, "moved", ["late", "left"]]);
});
