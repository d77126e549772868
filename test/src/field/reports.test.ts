/** Each report, and each stumble of a first day, is held by a test, or has a reason. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { FIRST_DAY } from "./first-day.ts";
import { REPORTS } from "./reports.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const NAME = /[A-Za-z0-9][A-Za-z0-9-]*\/[A-Za-z0-9._-]+#\d+/g;

/** The reports that comments of test files name. */
const named = (): ReadonlySet<string> => {
  const list = ["ls-files", "--cached", "--others", "--exclude-standard", "--", "*.test.ts"];
  const files = execFileSync("git", list, { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
  const comments = files.flatMap((file) =>
    readFileSync(resolve(ROOT, file), "utf8").match(/^\s*(\/\/|\/?\*).*$/gm),
  );
  return new Set(comments.flatMap((line) => line?.match(NAME) ?? []));
};

/** The names of a file's tests, as its source has them. */
const titlesIn = (file: string): readonly string[] => {
  const calls = readFileSync(resolve(ROOT, file), "utf8").matchAll(
    /\b(?:it|test|describe)\b[^"`]*?["`](.*?)["`],/gs,
  );
  return [...calls].map(([, title = ""]) => title);
};

it("each report has a test that names it, or a reason", () => {
  const tests = named();
  const without = REPORTS.filter(({ report, reason }) => !tests.has(report) && !reason);
  expect(without).toEqual([]);
  // A reason that a test has made void.
  expect(REPORTS.filter(({ report, reason }) => tests.has(report) && reason)).toEqual([]);
});

it("each stumble of the first day has its tests, or a reason", () => {
  expect(FIRST_DAY.filter(({ tests = [], reason }) => (tests.length === 0) === !reason)).toEqual(
    [],
  );
  const missing = FIRST_DAY.flatMap(({ tests = [] }) =>
    tests.filter(([file, title]) => !titlesIn(file).some((each) => each.includes(title))),
  );
  expect(missing).toEqual([]);
});

it("each is listed once, by its repository and number", () => {
  const names = REPORTS.map(({ report }) => report);
  expect(names.filter((name) => name.match(NAME)?.[0] !== name)).toEqual([]);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
