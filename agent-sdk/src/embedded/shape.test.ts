import fc from "fast-check";
import { expect, it } from "vitest";
import { shapeOf } from "./shape.ts";

/** Levels and values, as a parser finds them. */
const parsed = (value: unknown): { levels: number; values: number } => {
  if (typeof value !== "object" || value === null) return { levels: 0, values: 1 };
  const members = Object.values(value).map(parsed);
  return {
    levels: 1 + Math.max(0, ...members.map(({ levels }) => levels)),
    values: 1 + members.reduce((sum, { values }) => sum + values, members.length === 0 ? 1 : 0),
  };
};

const shape = (text: string) => shapeOf(new TextEncoder().encode(text));

it("counts the levels and values of every JSON text as a parser finds them", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      expect(shape(JSON.stringify(value))).toEqual(parsed(value));
    }),
    { numRuns: 500 },
  );
});

it.each([
  ["brackets in a string", '["[[[{{{"]', 1, 2],
  ["commas in a string", '["[,,,"]', 1, 2],
  ["an escaped quote", '["\\"[[[,"]', 1, 2],
  ["a backslash before the end of a string", '["\\\\",[]]', 2, 4],
  ["a text that never ends", "[".repeat(200), 200, 201],
  ["a character whose low byte is a quote", '["\u0122",[[]]]', 3, 5],
])("is not misled by %s", (_, text, levels, values) => {
  expect(shape(text)).toEqual({ levels, values });
});
