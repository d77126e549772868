import { expect, test } from "vitest";
import { Stream } from "./random-streams.ts";

test("a seed draws the same numbers every time, and another seed draws different ones", () => {
  const draws = (text: string) => {
    const stream = new Stream(text);
    return Array.from({ length: 5 }, () => stream.below(1000));
  };
  expect(draws("42/valve-7")).toEqual(draws("42/valve-7"));
  expect(draws("42/valve-7")).not.toEqual(draws("42/valve-8"));
});

test("numbers fill their range evenly enough and never leave it", () => {
  const stream = new Stream("range");
  const counts = new Array<number>(10).fill(0);
  for (let i = 0; i < 10_000; i++) {
    const drawn = stream.below(10);
    counts[drawn] = (counts[drawn] ?? 0) + 1;
  }
  expect(counts).toHaveLength(10);
  expect(Math.min(...counts)).toBeGreaterThan(800);
  expect(stream.below(1)).toBe(0);
});
