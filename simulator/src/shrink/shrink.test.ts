import { expect, it } from "vitest";
import type { Scenario } from "../scenario/schema.ts";
import { startGuard } from "../virtual/guard.ts";
import { loadPrograms } from "../virtual/programs.ts";
import { playWorld } from "../virtual/run.ts";
import { brokenBy } from "./broken.ts";
import { shrink } from "./shrink.ts";

it("drops the promises of groups that are gone, and those that nobody needs", async () => {
  const scenario: Scenario = {
    name: "two groups",
    duration: "1m",
    devices: [
      { group: "pumps", count: 3, kind: "echo" },
      { group: "lamps", count: 3, kind: "echo" },
    ],
    // Echo exposes nothing, so that the first check of either breaks.
    invariants: [
      { devices: "pumps", always: "pressure > 0" },
      { devices: "lamps", always: "state == 1" },
      { devices: "lamps", always: "other == 1" },
    ],
  };
  const options = { seed: 1, programs: loadPrograms(scenario, "."), crypto: "model" } as const;
  const guard = await startGuard([]);
  const broken = brokenBy(await playWorld(scenario, options, guard));
  guard.stop();
  if (broken === null) throw new Error("nothing broke");
  const shrunk = await shrink(scenario, broken, { ...options, budgetMs: 60_000 });
  expect(shrunk?.scenario.devices).toMatchObject([{ count: 1 }]);
  expect(shrunk?.scenario.invariants).toHaveLength(1);
  const [device] = shrunk?.scenario.devices ?? [];
  expect(shrunk?.scenario.invariants?.[0]?.devices).toBe(device?.group);
});
