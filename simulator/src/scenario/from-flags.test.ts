/** What `--program` and `--agents` change in a scenario. */
import { expect, it } from "vitest";
import { override } from "./from-flags.ts";
import type { Scenario } from "./schema.ts";

const SCENARIO: Scenario = {
  name: "three kinds",
  duration: "1m",
  devices: [
    { group: "sensors", count: 100, kind: "sensor" },
    { group: "valves", count: 60, kind: "valve" },
    { group: "echoes", count: 40, kind: "echo" },
  ],
};

const counts = (agents: number): number[] =>
  override(SCENARIO, undefined, agents).devices.map(({ count }) => count);

it("--agents is the number of all devices, shared as in the scenario, one in each group at least", () => {
  expect(counts(20)).toEqual([10, 6, 4]);
  for (let agents = 3; agents <= 400; agents++) {
    const each = counts(agents);
    expect([agents, each.reduce((sum, count) => sum + count)]).toEqual([agents, agents]);
    expect(Math.min(...each)).toBeGreaterThan(0);
  }
  expect(() => counts(2)).toThrow("the scenario has 3 groups");
});

it("--program for a scenario without a program is refused, not ignored", () => {
  expect(() => override(SCENARIO, "./pump.js", undefined)).toThrow("no group of the scenario");
  const own = { ...SCENARIO, devices: [{ group: "pumps", count: 2, program: "./old.js" }] };
  expect(override(own, "./pump.js", undefined).devices).toEqual([
    { group: "pumps", count: 2, program: "./pump.js" },
  ]);
});
