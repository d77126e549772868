import { describe, expect, test } from "vitest";
import { type Entry, interleave, median, quantile } from "./interleave.ts";

const PACE = { cycles: 24, warmUp: 0 };

/** Entries with given costs on a machine that gets slower with every slice. */
function slowingDown(
  costs: readonly number[],
  order: string[] = [],
  generator = [0, 0, 0, 0],
): Entry[] {
  let slow = 1;
  return costs.map((cost, i) => ({
    name: String(i),
    matters: i < 3,
    slice: async () => {
      order.push(String(i));
      slow *= 1.01;
      return { us: cost * slow, generator: generator[i] as number, server: 1 };
    },
  }));
}

describe("interleaving", () => {
  test("finds the ratio on a machine whose speed varies", async () => {
    const { standings, voids } = await interleave(slowingDown([10, 10, 5, 20]), PACE);
    expect(voids).toEqual([]);
    for (const [i, expected] of [1, 1, 0.5, 2].entries()) {
      const { ratio = 0, lower = 0, upper = 0 } = standings[i] ?? {};
      expect(Math.abs(ratio / expected - 1)).toBeLessThan(0.01);
      expect(lower).toBeLessThanOrEqual(ratio);
      expect(upper).toBeGreaterThanOrEqual(ratio);
    }
  });

  test("reverses the order each cycle", async () => {
    const order: string[] = [];
    await interleave(slowingDown([1, 1, 1], order), { cycles: 3, warmUp: 0 });
    expect(order.join("")).toBe("012210012");
  });

  test("warms each up until its cost is stable, up to the limit", async () => {
    const rounds = [0, 0];
    const cooling = (i: number, costAt: (round: number) => number): Entry => ({
      name: String(i),
      matters: true,
      slice: async () => {
        const round = rounds[i] as number;
        rounds[i] = round + 1;
        return { us: costAt(round), generator: 0, server: 0 };
      },
    });
    const entries = [
      cooling(0, (round) => Math.max(10, 100 - 10 * round)),
      cooling(1, (round) => 2 ** -round),
    ];
    await interleave(entries, { cycles: 1, warmUp: 30 });
    expect(rounds).toEqual([17, 31]);
  });

  test("voids a run in which the yardstick does not equal itself", async () => {
    for (const twin of [11, 9]) {
      const { voids } = await interleave(slowingDown([10, twin, 5]), PACE);
      expect(voids.join()).toContain("the machine is too busy");
    }
  });

  test("voids a run whose generator was the bottleneck, if that matters", async () => {
    const bound = (shares: number[]) => interleave(slowingDown([10, 10, 5, 5], [], shares), PACE);
    expect((await bound([0.5, 0.5, 0.95, 0.5])).voids.join()).toContain("95 % of its processor");
    expect((await bound([0.5, 0.5, 0.5, 0.95])).voids).toEqual([]);
  });
});

test("median and quantiles", () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
  expect(quantile([1, 2, 3, 4, 5], 0.25)).toBe(2);
});
