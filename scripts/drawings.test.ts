/** docs/*.svg are what their texts in docs/drawings make. */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, it } from "vitest";
import { draw, drawings } from "./drawings.ts";

const BOXES = `Two boxes.

box a 10 10 200 one
  a line
box b 400 10 200 two
arrow a b`;
const SEQUENCE = `Two actors.

actors one | two
one -> two: hello
two -- thinks
== done`;

it.each([...drawings()].map(([path, svg]) => [basename(path), path, svg] as const))(
  "%s is drawn from its text: `node scripts/drawings.ts`",
  (_name, path, svg) => {
    expect(readFileSync(path, "utf8")).toBe(svg);
  },
);

it("a drawing has a description, and colours for dark pages", () => {
  for (const text of [BOXES, SEQUENCE]) {
    expect(draw(text)).toMatch(/aria-label="Two [a-z]+\."/);
    expect(draw(text)).toContain("prefers-color-scheme: dark");
  }
});

it.each([
  ["arrow a c", "there is no box c"],
  ["circle d", "cannot be read: circle d"],
  [`box d 10 10 100 a title that is too long`, "does not fit"],
])("a wrong line of boxes is named: %s", (line, message) => {
  expect(() => draw(`${BOXES}\n${line}`)).toThrow(message);
});

it.each([
  ["one -> three: hello", "there is no actor three"],
  ["one - two", "cannot be read: one - two"],
])("a wrong line of a sequence is named: %s", (line, message) => {
  expect(() => draw(`${SEQUENCE}\n${line}`)).toThrow(message);
});
