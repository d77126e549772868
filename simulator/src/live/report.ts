/** Makes the report of a live run from its measurements. */

import { type Plan, planHash, plannedCalls } from "../plan.ts";
import { machine } from "../report/machine.ts";
import type { Measurements } from "../report/measure.ts";
import type { KindResult, OracleResult, Report } from "../report/report.ts";
import { judge, type Threshold } from "../report/thresholds.ts";
import type { Scenario } from "../scenario/schema.ts";
import { phases } from "../virtual/run.ts";
import type { Missing } from "./fleet.ts";
import { missingDevices } from "./missing.ts";

export interface LiveFacts {
  scenario: Scenario;
  plan: Plan;
  seed: number;
  thresholds: readonly Threshold[];
  startedAt: Date;
  durationS: number;
  stopped: string | null;
  measured: Measurements;
  connected: number;
  missing: readonly Missing[];
  rssBytesPerAgent: number | null;
  relay: Report["relay"];
  dropped: Report["dropped"];
  oracles: OracleResult[];
  /** The file of our own relay's store that contained a secret. */
  leak: string | null;
}

export function liveReport(facts: LiveFacts): Report {
  const { scenario, plan, seed, measured, oracles, stopped, leak, durationS } = facts;
  const { tally } = measured;
  const thresholds = judge(facts.thresholds, measured);
  const right = [...thresholds, ...oracles].every(({ ok }) => ok);
  return {
    ok: stopped === null && right,
    stopped: stopped ?? (leak === null ? null : `the relay stored a secret in ${leak}`),
    seed,
    started_at: facts.startedAt.toISOString(),
    duration_s: durationS,
    agents: { requested: plan.devices.length, connected: facts.connected },
    calls: {
      planned: plan.loads.reduce((sum, load) => sum + plannedCalls(load), 0),
      sent: tally.sent,
      ok: tally.ok,
      failed: tally.failed,
    },
    latency_ms: tally.all.summary(),
    first_call_latency_ms: tally.first.summary(),
    calls_per_second: durationS === 0 ? 0 : Number((tally.ok / durationS).toFixed(1)),
    relay: facts.relay,
    simulator: { rss_bytes_per_agent: facts.rssBytesPerAgent },
    thresholds,
    kinds: kindsOf(facts),
    failures: [...missingDevices(facts.missing), ...tally.failures()],
    phases: phases(scenario, durationS),
    series: measured.series,
    histogram: tally.histogram(),
    heat: tally.heat(),
    outliers: tally.outliers(),
    machine: machine(),
    world: "live",
    scenario: { ...scenario, seed },
    programs: {},
    trace: planHash(plan),
    oracles,
    faults: plan.faults.map(({ spec, atUs, endUs }) => ({
      kind: spec.kind,
      at_s: atUs / 1e6,
      until_s: endUs / 1e6,
    })),
    dropped: facts.dropped,
    shrunk: null,
  };
}

function kindsOf({ plan, measured, missing }: LiveFacts): KindResult[] {
  const groups = new Map<string, number>();
  for (const { group } of plan.devices) groups.set(group, (groups.get(group) ?? 0) + 1);
  return [...groups].map(([group, agents]) => {
    const { calls, ok, latency } = measured.tally.kind(group);
    const away = missing.filter(({ id }) => id.includes(`${group}-`)).length;
    return {
      kind: group,
      agents,
      connected: agents - away,
      calls,
      ok,
      latency_ms: latency.summary(),
    };
  });
}
