/** A start that fails: what the user sees on a board's console. */
import { makeToken } from "@blindrelay/protocol";
import { expect, it } from "vitest";
import { MemoryPreference } from "../engines/preference.ts";
import { fakeTime, fakeTimer } from "../testing/moddable-sdk.ts";
import { type StartOptions, startOn } from "./start.ts";

it("prints why it cannot start before it throws, because a release build shows no error", () => {
  const traced: string[] = [];
  const sdk = {
    Timer: fakeTimer,
    Time: fakeTime(),
    Preference: new MemoryPreference(),
    trace: (text: string) => {
      traced.push(text);
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
  expect(traced).toEqual([expect.stringMatching(/^blindrelay error: .*boot count.*\n$/)]);
});
