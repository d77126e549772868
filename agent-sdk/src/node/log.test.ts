import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { logToStderr, programFrames } from "./log.ts";

const thrown = (...frames: string[]): Error => {
  const error = new Error("percent: 0 to 100");
  error.stack = [`${error}`, ...frames.map((frame) => `    at ${frame}`)].join("\n");
  return error;
};
const OURS = [
  `Dispatcher.run (${new URL("../core/dispatch.ts", import.meta.url)}:262:24)`,
  `Session.open (${fileURLToPath(new URL("../../../protocol/src/session/device.ts", import.meta.url))}:9:1)`,
];
const OTHERS = [
  "Receiver.emit (file:///home/ada/node_modules/ws/lib/receiver.js:1:2)",
  "process.processTicksAndRejections (node:internal/process/task_queues:104:5)",
];

test("shows only the program's frames", () => {
  const own = ["file:///home/ada/valve.js:6:13", "open (/home/ada/valve.js:9:1)"];
  expect(programFrames(thrown(...own, ...OURS, ...OTHERS))).toBe(
    own.map((frame) => `\n    at ${frame}`).join(""),
  );
});

test("shows a stack without any in full, and nothing if there is no stack", () => {
  expect(programFrames(thrown(...OURS, ...OTHERS)).split("\n")).toHaveLength(5);
  expect([programFrames("percent"), programFrames({ code: 22 })]).toEqual(["", ""]);
});

test("shows nothing of an error that cannot be looked at", () => {
  const message = JSON.parse(`${"[".repeat(20_000)}${"]".repeat(20_000)}`);
  const stack = "Error\n    at file:///home/ada/valve.js:6:13";
  expect(programFrames(Object.assign(new Error(), { message, stack }))).toBe("");
  const get = () => expect.unreachable();
  expect(programFrames(Object.defineProperty(new Error(), "stack", { get }))).toBe("");
});

test("a caller's text in a message neither looks like frames nor controls the terminal", () => {
  const hostile = "unknown mode x\n    at \u001b]0;mine\u0007\u009b31m\u202e (valve.js:1:1)";
  const error = new Error(hostile);
  error.stack = `Error: ${hostile}\n    at file:///home/ada/valve.js:6:13`;
  expect(programFrames(error)).toBe("\n    at file:///home/ada/valve.js:6:13");
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  logToStderr("warn", "failed", { reason: "\u009b31m" }, new Error("\u001b[2J"));
  const [printed] = write.mock.calls[0] ?? [];
  write.mockRestore();
  expect(printed).toMatch(/^warn: failed \{"reason":"\ufffd31m"\}\n +at /);
});

test("control characters of a stack that does not begin with its error are not printed", () => {
  const error = new Error("valve");
  error.stack = "Error: gate\n    at \u001b[2Jgate.js:1:1";
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  logToStderr("error", "failed", undefined, error);
  const [printed] = write.mock.calls[0] ?? [];
  write.mockRestore();
  expect(printed).toBe("error: failed\n    at \ufffd[2Jgate.js:1:1\n");
});
