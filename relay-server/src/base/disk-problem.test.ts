import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { diskProblem } from "./disk-problem.ts";

it.runIf(existsSync("/proc/self"))("a file system that cannot tell its size is not full", () => {
  expect(diskProblem("/proc")?.what ?? "").not.toContain("full");
});
