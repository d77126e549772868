/** A start that fails: what the user sees on a board's console. */
import { makeToken } from "@blindrelay/protocol";
import { expect, it } from "vitest";
import { MemoryPreference } from "../engines/preference.ts";
import { fakeTime, fakeTimer, valuesOf } from "../testing/moddable-sdk.ts";
import { provisionOn, type StartOptions, startOn } from "./start.ts";

it("prints why it cannot start before it throws, because a release build shows no error", () => {
  const printed: string[] = [];
  const sdk = {
    Timer: fakeTimer,
    Time: fakeTime(),
    values: valuesOf(new MemoryPreference()),
    print: (line: string) => {
      printed.push(line);
    },
  };
  const start = (network: StartOptions["network"]) =>
    startOn(sdk, {
      url: "ws://relay.test/wss",
      agentId: "pump-7",
      relayToken: makeToken("agent", new Uint8Array(32)),
      agentToken: makeToken("e2e", new Uint8Array(32)),
      program: () => {},
      network,
    });
  expect(() => start({})).toThrow("ws://relay.test/wss needs a ws network");
  expect(() => start({ ws: { io: class {} as never } })).toThrow("boot count");
  expect(printed).toEqual([
    expect.stringMatching(/^blindrelay error: .*needs a ws network$/),
    expect.stringMatching(/^blindrelay error: .*boot count/),
  ]);
});

it("prints that it is provisioned, and why it is not", () => {
  const printed: string[] = [];
  const sdk = {
    values: valuesOf(new MemoryPreference()),
    print: (line: string) => {
      printed.push(line);
    },
  };
  const token = makeToken("e2e", new Uint8Array(32));
  provisionOn(sdk, token, {});
  expect(() => provisionOn(sdk, token, {})).toThrow();
  expect(printed).toEqual([
    "provisioned: build and flash again, without provision=1",
    expect.stringMatching(/^blindrelay error: /),
  ]);
});
