import { expect, test } from "vitest";
import { line } from "./memory.ts";

test("the slope and the fit of a line, and of points that are on none", () => {
  const points = [1_000, 2_000, 3_000, 4_000].map((connections) => ({
    connections,
    bytes: 9e6 + connections * 5_000,
  }));
  expect(line(points)).toEqual({ slope: 5_000, fit: 1 });
  const step = points.map((point, i) => ({ ...point, bytes: i === 1 ? 9e7 : 9e6 }));
  expect(line(step).fit).toBeLessThan(0.5);
});
