/** Who is responsible for an uncaught error, and the place it is reported with. */
import { describe, expect, it } from "vitest";
import { describeThrown, isOfProgram } from "./uncaught.ts";

const thrown = (...frames: string[]): Error => {
  const error = new Error("oops");
  error.stack = ["Error: oops", ...frames.map((frame) => `    at ${frame}`)].join("\n");
  return error;
};
const OWN = `run (${new URL("../account/connect.ts", import.meta.url)}:3:4)`;
const SDK = `emit (${new URL("./core/agent.ts", import.meta.resolve("@blindrelay/agent-sdk"))}:3:4)`;
const NODE = "listOnTimeout (node:internal/timers:573:17)";
const WS = "Receiver.emit (/home/ada/node_modules/ws/lib/websocket.js:1282:20)";

const UNREADABLE = Object.defineProperty(new Error(), "stack", {
  get: () => expect.unreachable(),
});

describe("an error is the program's", () => {
  it.each([
    ["whose code throws", thrown("Timeout._onTimeout (file:///home/ada/pump.mjs:3:40)", NODE)],
    ["whose code is the only frame", thrown("file:///home/ada/pump.mjs:3:40")],
    ["that misuses the SDK", thrown(SDK, "tick (file:///home/ada/lib/pump.mjs:3:40)", NODE)],
    ["that was rejected without anybody's code", thrown(NODE)],
    ["that is a text", "oops"],
    ["that cannot be looked at", UNREADABLE],
  ])("%s", (_what, error) => expect(isOfProgram(error)).toBe(true));
});

describe("an error is blindrelay's own", () => {
  it.each([
    ["where only our code is on the stack", thrown(OWN, NODE)],
    ["where a library calls us", thrown(SDK, WS, NODE)],
  ])("%s", (_what, error) => expect(isOfProgram(error)).toBe(false));
});

it("begins with the first place in the program, and shows only its frames", () => {
  const error = thrown(SDK, NODE, "async tick (file:///home/ada/my%20pump.mjs:3:40)");
  expect(describeThrown(error)).toBe(
    "/home/ada/my pump.mjs:3:40: Error: oops\n    at async tick (file:///home/ada/my%20pump.mjs:3:40)",
  );
  expect(describeThrown(thrown(SDK, NODE))).toMatch(
    /^Error: oops\n {4}at emit .*\n {4}at listOnTimeout/,
  );
  expect(describeThrown("oops")).toBe("oops");
  expect(describeThrown(Object.create(null))).toBe("something that cannot be shown");
});
