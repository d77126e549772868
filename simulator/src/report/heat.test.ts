import { describe, expect, test } from "vitest";
import { HeatMap } from "./heat.ts";
import { Outliers } from "./outliers.ts";

const total = (columns: number[][]): number => columns.flat().reduce((sum, n) => sum + n, 0);

describe("a heat map", () => {
  test("counts by second and by latency", () => {
    const heat = new HeatMap();
    heat.record(0.2, 10_000);
    heat.record(0.9, 10_100);
    heat.record(3.5, 900_000);
    const { column_s, edges_ms, columns } = heat.result();
    expect([column_s, columns.length, edges_ms.length]).toEqual([1, 4, 17]);
    expect([edges_ms[0], edges_ms.at(-1)]).toEqual([10, 1000]);
    expect([columns[0]?.[0], columns[3]?.at(-1), total(columns)]).toEqual([2, 1, 3]);
  });

  test("keeps every call and no more columns, however long the run", () => {
    const heat = new HeatMap();
    for (let s = 0; s < 86_400; s += 60) heat.record(s, 20_000);
    const { column_s, columns } = heat.result();
    expect([column_s, columns.length <= 120, total(columns)]).toEqual([1024, true, 1440]);
  });

  test("puts values out of its range into its first or last row", () => {
    const heat = new HeatMap();
    heat.record(0, 0);
    heat.record(0, 1e12);
    expect(total(heat.result().columns)).toBe(2);
  });
});

describe("outliers", () => {
  test("are devices with failures, then far slower ones, and no others", () => {
    const outliers = new Outliers();
    outliers.record("usual", 40_000);
    outliers.record("slow", 900_000);
    outliers.record("broken", null);
    outliers.record("broken", 40_000);
    expect(outliers.worst(40)).toEqual([
      { device: "broken", calls: 2, failed: 1, max_ms: 40 },
      { device: "slow", calls: 1, failed: 0, max_ms: 900 },
    ]);
  });

  test("are at most ten", () => {
    const outliers = new Outliers();
    for (let n = 0; n < 50; n++) outliers.record(`d-${n}`, null);
    expect(outliers.worst(1)).toHaveLength(10);
  });
});
