/** What the programs of a scenario can be called: the methods that they handle once started. */
import type { Scenario } from "../scenario/schema.ts";
import { startGuard } from "../virtual/guard.ts";
import { loadPrograms } from "../virtual/programs.ts";
import { playWorld } from "../virtual/run.ts";

export async function methodsOf(scenario: Scenario, folder: string): Promise<string[]> {
  const programs = loadPrograms(scenario, folder);
  const guard = await startGuard([...programs.values()]);
  try {
    const devices = scenario.devices.map((group) => ({ ...group, count: 1, start: {} }));
    const started: Scenario = { name: "started", duration: "2s", devices };
    const { world } = await playWorld(started, { seed: 1, programs }, guard);
    return [...world.methods].sort();
  } finally {
    guard.stop();
  }
}
