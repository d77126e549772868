/** How much faster than real time the virtual world of blindrelay-sim runs. */
import { loadPrograms, loadScenario, runVirtual } from "@blindrelay/simulator/testing";
import { median } from "./interleave.ts";

const SCENARIO = "steady-fleet";
const SEED = 1;

export interface WorldResult {
  readonly scenario: string;
  readonly devices: number;
  readonly virtualSeconds: number;
  /** Processor time of this process per run; the median of all. */
  readonly cpuSeconds: number;
  readonly calls: number;
  readonly voids: readonly string[];
}

/** Runs a scenario of the library `runs` times, after an uncounted warm-up if there are several. */
export async function measureWorld(runs: number): Promise<WorldResult> {
  const { scenario, folder } = await loadScenario(SCENARIO);
  const cpu: number[] = [];
  let last: Awaited<ReturnType<typeof runVirtual>> | null = null;
  for (let i = runs > 1 ? -1 : 0; i < runs; i++) {
    const before = process.cpuUsage();
    last = await runVirtual(scenario, { seed: SEED, programs: loadPrograms(scenario, folder) });
    const { user, system } = process.cpuUsage(before);
    if (i >= 0) cpu.push((user + system) / 1e6);
  }
  const { report, world } = last as NonNullable<typeof last>;
  return {
    scenario: scenario.name ?? SCENARIO,
    devices: report.agents.requested,
    virtualSeconds: world.clock.nowUs / 1e6,
    cpuSeconds: median(cpu),
    calls: report.calls.ok,
    voids: report.ok ? [] : [`the scenario ${SCENARIO} failed: ${report.stopped}`],
  };
}
