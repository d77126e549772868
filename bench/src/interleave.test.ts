import { describe, expect, test } from "vitest";
import { interleave, median } from "./interleave.ts";

/** Entries of given costs on a machine that gets slower with every slice. */
function slowingDown(costs: readonly number[], order: string[] = []) {
  let slow = 1;
  return costs.map((cost, i) => ({
    name: String(i),
    slice: async () => {
      order.push(String(i));
      slow *= 1.01;
      return cost * slow;
    },
  }));
}

describe("interleaving", () => {
  test("finds the ratio on a machine whose speed wanders", async () => {
    const { standings, valid } = await interleave(slowingDown([10, 10, 5, 20]), 24);
    expect(valid).toBe(true);
    for (const [i, ratio] of [1, 1, 0.5, 2].entries()) {
      expect(Math.abs((standings[i]?.ratio ?? 0) / ratio - 1)).toBeLessThan(0.01);
    }
  });

  test("turns the order round each cycle, and does not count the first", async () => {
    const order: string[] = [];
    await interleave(slowingDown([1, 1, 1], order), 2);
    expect(order.join("")).toBe("210012210");
  });

  test("voids a run in which the yardstick does not equal itself", async () => {
    expect((await interleave(slowingDown([10, 11, 5]), 5)).valid).toBe(false);
    expect((await interleave(slowingDown([10, 9, 5]), 5)).valid).toBe(false);
  });
});

test("the median", () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
});
