/**
 * The cost of forwarding while many more agents only hold their connection, against a yardstick
 * without such agents, and the relay's processor time for one scrape of its metrics.
 */
import type { Contender } from "./contenders.ts";
import { type Effort, measureForwarding, type Rig } from "./forwarding.ts";
import type { Comparison } from "./interleave.ts";
import { SCENARIOS, type Scenario } from "./sections.ts";
import { cpuUs } from "./usage.ts";

const SCRAPES = 5;
const GROUP = "idle agents";

export interface GrowthLevel {
  readonly connected: number;
  readonly comparison: Comparison;
  /** Milliseconds of the relay's processor. */
  readonly scrapeMs: number;
}

/** `rig`: the yardstick, its twin and the relay. `levels` are ascending. */
export async function measureGrowth(
  rig: Rig,
  levels: readonly number[],
  effort: Effort,
  onLevel: (connected: number) => void,
): Promise<GrowthLevel[]> {
  const relay = rig.contenders[2] as Contender;
  const c1 = SCENARIOS[0] as Scenario;
  const most = levels.at(-1) as number;
  // Taken first, so that each level uses different pairs.
  const peers = await relay.idle(most);
  const pairs = await relay.pairs(Math.max(2, Math.round(c1.pairs * effort.share)), c1.bytes);
  const kept: Contender = { ...relay, pairs: async () => pairs, release: () => {} };
  const contenders = rig.contenders.map((one) => (one === relay ? kept : one));
  const results: GrowthLevel[] = [];
  let connected = 0;
  try {
    for (const level of levels) {
      onLevel(level);
      await rig.generator.ask({ kind: "idle", group: GROUP, peers: peers.slice(connected, level) });
      connected = level;
      const comparison = await measureForwarding({ ...rig, contenders }, c1, effort);
      results.push({ connected, comparison, scrapeMs: await scrape(relay) });
    }
    return results;
  } finally {
    await rig.generator.ask({ kind: "close", group: GROUP });
    relay.release();
  }
}

async function scrape(relay: Contender): Promise<number> {
  const before = cpuUs(relay.pid);
  for (let i = 0; i < SCRAPES; i++) await (await fetch(relay.metricsUrl as string)).text();
  return (cpuUs(relay.pid) - before) / SCRAPES / 1000;
}
