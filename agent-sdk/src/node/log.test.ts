import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { programFrames } from "./log.ts";

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
