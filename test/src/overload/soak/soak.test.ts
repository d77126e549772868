/** What the soak takes for a leak. */
import { expect, test } from "vitest";
import { riseOf } from "./soak.ts";

const MB = 2 ** 20;
/** A collector's saw tooth over a floor, and ten thousand links that come in the first quarter. */
const samples = (floor: (second: number) => number): number[] =>
  Array.from({ length: 3600 }, (_, s) => (s < 900 ? s / 9 : 100) * MB + floor(s) + (s % 47) * MB);

test("a saw tooth is level, whatever came before", () => {
  expect(Math.abs(riseOf(samples(() => 0)).rise)).toBeLessThan(2 * MB);
});

test("30 MB an hour are a rise", () => {
  const { floors, rise } = riseOf(samples((second) => (second / 3600) * 30 * MB));
  expect(floors).toHaveLength(10);
  expect(rise).toBeGreaterThan(19 * MB);
});
