/**
 * What the user is told if a board does not run the SDK. The whole path is tested in
 * test/src/bridge.
 */
import { ManualTimer } from "@blindrelay/agent-sdk/memory";
import { expect, it } from "vitest";
import { carrySealed } from "./sealed.ts";

const carry = () => {
  const timer = new ManualTimer();
  const told: string[] = [];
  const user = carrySealed(
    { write: async () => undefined },
    {
      url: "ws://relay.invalid/wss",
      timer,
      log: (level, message) => told.push(`${level}: ${message}`),
    },
  );
  return { timer, told, user };
};

it("a silent line, or one with other traffic, is reported once", async () => {
  const silent = carry();
  const other = carry();
  other.user.data(Buffer.from("NO SDK: 21.5 C\r\n"));
  for (const { timer, user } of [silent, other]) {
    timer.advance(60_000);
    await user.end("");
  }
  expect(silent.told).toEqual([expect.stringMatching(/^warn: nothing comes from the device: /)]);
  expect(other.told).toEqual([
    expect.stringMatching(/^warn: what the device sends does not come from the SDK: /),
  ]);
});

it("a line that is gone is not reported", async () => {
  const { timer, told, user } = carry();
  await user.end("unplugged");
  timer.advance(60_000);
  expect(told).toEqual([]);
});
