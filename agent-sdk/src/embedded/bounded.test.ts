import { expect, it } from "vitest";
import type { LinkEvents, LinkPort } from "../ports.ts";
import { boundedLinks, messageBytes, refusal, SMALL_MAX_NESTING } from "./bounded.ts";
import { KnownNames } from "./names.ts";

/** A link that a test drives, and what the agent gets to hear of it. */
const open = (maxMessage: number) => {
  const heard: string[] = [];
  let relay: LinkEvents | null = null;
  const bounds = { maxNesting: SMALL_MAX_NESTING, names: new KnownNames(180) };
  const port: LinkPort = {
    connect: (_url, events) => {
      relay = events;
      return { send: () => undefined, close: (code) => heard.push(`close ${code}`) };
    },
  };
  boundedLinks(port, maxMessage, bounds).connect("ws://relay.test/wss", {
    opened: () => heard.push("opened"),
    received: (text) => heard.push(text),
    closed: (code) => heard.push(`closed ${code}`),
  });
  return { relay: relay as unknown as LinkEvents, heard };
};

it("ignores a message that is nested too deep, before anything parses it", () => {
  const { relay, heard } = open(1000);
  relay.opened();
  relay.received("[".repeat(400));
  relay.received(`{"type":"x","a":${"[".repeat(8)}${"]".repeat(8)}}`);
  relay.received(`["\u0122",${"[".repeat(200)}`);
  const most = "[".repeat(8) + "]".repeat(8);
  relay.received(most);
  relay.closed(1006, "");
  expect(heard).toEqual(["opened", most, "closed 1006"]);
});

it("ignores a message with more new names than an engine can keep", () => {
  const { relay, heard } = open(1000);
  relay.received('{"type":1,"more":2}');
  relay.received(`{"${"x".repeat(200)}":1}`);
  relay.received('{"more":1}');
  for (const letter of "äöü") relay.received(`{"${letter}":1}`);
  expect(heard).toEqual(['{"type":1,"more":2}', '{"more":1}', '{"ä":1}', '{"ö":1}']);
});

it("ignores an envelope whose packet is nested too deep or has too many new names", () => {
  const { relay, heard } = open(2000);
  const envelope = (payload: string) => JSON.stringify({ type: "relay", payload });
  const received = [
    envelope("[".repeat(400)),
    envelope(`{"v":${"[".repeat(9)}`),
    envelope('{"v":1,"sid":2}'),
    envelope('{"v":1,"w":2}'),
    `{"type":"relay","\\u0070ayload":"${"[".repeat(400)}"}`,
    envelope('{"sid":1}'),
  ];
  for (const text of received) relay.received(text);
  expect(heard).toEqual([received[2], received[5]]);
});

it("ignores a message with more values than any has, and an envelope whose packet has", () => {
  const { relay, heard } = open(2000);
  const zeros = (count: number) => `[${Array(count).fill("0").join()}]`;
  const envelope = (payload: string) => JSON.stringify({ type: "relay", payload });
  for (const text of [zeros(64), zeros(63), envelope(zeros(64)), envelope(zeros(63))])
    relay.received(text);
  expect(heard).toEqual([zeros(63), envelope(zeros(63))]);
});

it("refuses a call with more values than its length may have, and says how many", () => {
  const bounds = { maxPlaintext: 80, maxNesting: SMALL_MAX_NESTING, names: null };
  const refused = (text: string) => refusal(new TextEncoder().encode(text), bounds);
  expect(refused('{"id":[1,2,3,4,5,6,7]}')).toBeUndefined();
  expect(refused('{"id":[1,2,3,4,5,6,7],"method":"a,b"}')).toBeUndefined();
  expect(refused('{"id":[1,2,3,4,5,6,7,8],"method":"a,b"}')).toBe(
    "the call has 11 values, at most 10 fit",
  );
});

it("ends the link for a message over the limit", () => {
  const { relay, heard } = open(10);
  relay.received('"12345678"');
  relay.received('"123456789"');
  expect(heard).toEqual(['"12345678"', "close 1009"]);
});

it("has room for the longest call that it takes, and never more than the contract's message", () => {
  expect(messageBytes(8192)).toBeGreaterThan(8192 * (4 / 3) + 1000);
  expect(messageBytes(47_000)).toBeLessThanOrEqual(65_536);
});
