/** One run in the virtual world, from a checked scenario to its report. */

import { makePlan, type Plan, plannedCalls } from "../plan.ts";
import { machine } from "../report/machine.ts";
import type { KindResult, Report } from "../report/report.ts";
import { judge, reasonToAbort, type Threshold, thresholdsOf } from "../report/thresholds.ts";
import type { Scenario } from "../scenario/schema.ts";
import { durationMs } from "../scenario/units.ts";
import { type Guard, startGuard } from "./guard.ts";
import type { LoadedProgram } from "./program.ts";
import { sourcesOf } from "./programs.ts";
import { oraclesOf, type Violation, World } from "./world.ts";

export interface RunOptions {
  seed: number;
  programs: ReadonlyMap<string, LoadedProgram>;
  /** Called occasionally with the completed share, and how the run goes. */
  progress?: (done: number, line: string) => void;
  signal?: AbortSignal;
  /** Real time after which the run is ended in any case. */
  hardStopMs?: number;
  /** Ends the run when a program has used this much CPU time without returning. */
  stuckMs?: number;
  /** Entries of the trace that the result keeps. */
  keptEntries?: number;
  /** Also simulates the pings of idle links; the trace is the same. */
  playsAllPings?: boolean;
}

export interface VirtualResult {
  report: Report;
  violation: Violation | null;
  world: World;
}

/** Many times longer than the largest scenario takes. */
const HARD_STOP_MS = 15 * 60_000;

export async function runVirtual(scenario: Scenario, options: RunOptions): Promise<VirtualResult> {
  const guarding = startGuard([...options.programs.values()], options.stuckMs);
  try {
    return await runGuarded(scenario, options, guarding);
  } finally {
    (await guarding).stop();
  }
}

/** `guarding`: starts on another core while this one makes the world. */
async function runGuarded(
  scenario: Scenario,
  options: RunOptions,
  guarding: Promise<Guard>,
): Promise<VirtualResult> {
  const { seed, programs, signal, progress } = options;
  const startedAt = new Date();
  const startedMs = performance.now();
  const plan = makePlan(scenario, seed);
  const { keptEntries = 0, playsAllPings = false } = options;
  const thresholds = thresholdsOf(scenario);
  const world = new World({
    scenario,
    plan,
    programs,
    keptEntries,
    playsAllPings,
    stopsFor: (nowUs, measured) => reasonToAbort(thresholds, nowUs, measured),
  });
  const hardStopMs = options.hardStopMs ?? HARD_STOP_MS;
  let stopped: string | null = null;
  const guard = await guarding;
  const stuck = await guard.play(world, (done) => {
    progress?.(done, world.measured.inWords());
    if (signal?.aborted) stopped = "interrupted";
    else if (performance.now() - startedMs > hardStopMs) {
      stopped = `the run took longer than ${Math.round(hardStopMs / 1000)} s of real time`;
    }
    return stopped === null;
  });
  stopped = stuck ?? world.stopped ?? stopped;
  const { violation } = world;
  if (violation !== null) stopped = `the oracle "${violation.oracle}": ${violation.detail}`;
  const report = virtualReport(world, {
    scenario,
    plan,
    seed,
    programs,
    thresholds,
    startedAt,
    stopped,
    ranMs: performance.now() - startedMs,
  });
  return { report, violation, world };
}

interface Facts {
  scenario: Scenario;
  plan: Plan;
  seed: number;
  programs: ReadonlyMap<string, LoadedProgram>;
  thresholds: readonly Threshold[];
  startedAt: Date;
  stopped: string | null;
  ranMs: number;
}

function virtualReport(world: World, facts: Facts): Report {
  const { scenario, plan, seed, programs, thresholds, startedAt, stopped } = facts;
  const { measured, violation, clock } = world;
  const { tally } = measured;
  const seconds = clock.nowUs / 1e6;
  const judged = judge(thresholds, measured);
  const planned = plan.loads.reduce((sum, load) => sum + plannedCalls(load), 0);
  const ok = stopped === null && judged.every((threshold) => threshold.ok);
  const counters = world.relay.stats()?.counters;
  return {
    ok,
    stopped,
    seed,
    started_at: startedAt.toISOString(),
    duration_s: Number((facts.ranMs / 1000).toFixed(3)),
    agents: {
      requested: plan.devices.length,
      connected: world.devices.filter(({ online }) => online).length,
    },
    calls: { planned, sent: tally.sent, ok: tally.ok, failed: tally.failed },
    latency_ms: tally.all.summary(),
    first_call_latency_ms: tally.first.summary(),
    calls_per_second: seconds === 0 ? 0 : Number((tally.ok / seconds).toFixed(1)),
    relay: {
      rss_bytes_per_agent: null,
      cpu_us_per_message: null,
      messages: measured.counter("relay.forwarded"),
    },
    simulator: { rss_bytes_per_agent: null },
    thresholds: judged,
    kinds: kinds(world),
    failures: [...tally.failures(), ...measured.programErrors.values()],
    phases: phases(scenario, seconds),
    series: measured.series,
    histogram: tally.histogram(),
    heat: tally.heat(),
    outliers: tally.outliers(),
    machine: machine(),
    world: "virtual",
    scenario: { ...scenario, seed },
    programs: sourcesOf(scenario, programs),
    trace: world.traceLog.hash(),
    oracles: oraclesOf(scenario.relay?.nodes ?? 1).map(([name, holds]) =>
      violation?.oracle === name
        ? { name, ok: false, detail: violation.detail }
        : { name, ok: true, detail: holds },
    ),
    faults: plan.faults.map(({ spec, atUs, endUs }) => ({
      kind: spec.kind,
      at_s: atUs / 1e6,
      until_s: endUs / 1e6,
    })),
    dropped: [...(counters?.dropped ?? [])].map(([reason, count]) => ({ reason, count })),
    shrunk: null,
  };
}

function kinds({ devices, measured }: World): KindResult[] {
  const groups = new Map<string, KindResult>();
  for (const { plan, online } of devices) {
    let group = groups.get(plan.group);
    if (group === undefined) {
      const { calls, ok, latency } = measured.tally.kind(plan.group);
      group = {
        kind: plan.group,
        agents: 0,
        connected: 0,
        calls,
        ok,
        latency_ms: latency.summary(),
      };
      groups.set(plan.group, group);
    }
    group.agents += 1;
    group.connected += online ? 1 : 0;
  }
  return [...groups.values()];
}

/** The scenario's own phases, or the whole run as one. */
export function phases(scenario: Scenario, seconds: number): Report["phases"] {
  let from = 0;
  const named = (scenario.phases ?? []).map(({ name, until }) => {
    const end = Math.min(durationMs(until) / 1000, seconds);
    const phase = { name, seconds: Math.max(0, end - from) };
    from = Math.max(from, end);
    return phase;
  });
  return [...named, { name: named.length === 0 ? "run" : "rest", seconds: seconds - from }];
}
