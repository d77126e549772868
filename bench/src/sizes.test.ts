import { espruinoFile } from "@blindrelay/agent-sdk/testing/budgets";
import { expect, test } from "vitest";
import { report } from "./sizes.ts";

const { limit } = espruinoFile("2", 1);

test("one figure over its limit fails the run, and its line shows it", () => {
  const { ok, text } = report([espruinoFile("2", limit), espruinoFile("2", limit + 1)], []);
  expect(ok).toBe(false);
  const marks = text.split("\n").filter((line) => line.includes("Espruino file"));
  expect(marks.map((line) => line.endsWith("OVER its limit"))).toEqual([false, true]);
});

test("a figure far within its limit is marked, but does not fail the run", () => {
  const { ok, text } = report([espruinoFile("2", 1)], []);
  expect(ok).toBe(true);
  expect(text).toContain("far within its limit");
});

test("skipped measurements are reported with their fix", () => {
  const { ok, text } = report([], [{ what: "an engine", fix: "install it" }]);
  expect(ok).toBe(true);
  expect(text).toContain("SKIPPED  an engine: install it");
});
