import { expect, test } from "vitest";
import { descriptorWatch, maxOpenFiles, openFiles } from "./descriptors.ts";

// joyent/libuv#690
test("a shortage is said once a minute while it lasts, and its end once", () => {
  let [nowMs, open] = [0, 100];
  const look = descriptorWatch(
    256,
    () => nowMs,
    () => open,
  );
  const said: string[] = [];
  for (const [upTo, count] of [
    [10, 239],
    [130, 256],
    [140, 224], // neither scarce nor enough
    [150, 223],
    [160, 240],
  ] as const) {
    for (open = count; nowMs < upTo * 1000; nowMs += 1000) {
      const finding = look();
      if (finding !== null) said.push(`${nowMs / 1000} ${finding}`);
    }
  }
  expect(said).toEqual(["10 scarce", "70 scarce", "140 enough", "150 scarce"]);
});

test("a system that says neither is never short", () => {
  expect(maxOpenFiles("/nonexistent")).toBe(Number.POSITIVE_INFINITY);
  expect(
    descriptorWatch(
      256,
      () => 0,
      () => 0,
    )(),
  ).toBeNull();
});

test.skipIf(openFiles() === 0)("both are read from the system", () => {
  expect(maxOpenFiles()).toBeGreaterThan(openFiles());
  expect(openFiles()).toBeGreaterThan(2);
});
