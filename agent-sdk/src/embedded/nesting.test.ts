import fc from "fast-check";
import { expect, it } from "vitest";
import { nestingOf } from "./nesting.ts";

const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? 1 + Math.max(0, ...Object.values(value).map(depthOf))
    : 0;

const levels = (text: string): number => nestingOf(new TextEncoder().encode(text));

it("counts the levels of every JSON text as a parser finds them", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      expect(levels(JSON.stringify(value))).toBe(depthOf(value));
    }),
    { numRuns: 500 },
  );
});

it.each([
  ["brackets in a string", '["[[[{{{"]', 1],
  ["an escaped quote", '["\\"[[["]', 1],
  ["a backslash before the end of a string", '["\\\\",[]]', 2],
  ["a text that never ends", "[".repeat(200), 200],
  ["a character whose low byte is a quote", '["\u0122",[[]]]', 3],
])("is not misled by %s", (_, text, expected) => {
  expect(levels(text)).toBe(expected);
});
