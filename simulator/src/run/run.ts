/**
 * A scenario in its world, from start to report; after a violation, the search for the smallest
 * scenario that shows it again.
 */
import { resolve } from "node:path";
import { EXIT, Failure } from "../failure.ts";
import { makePlan, planHash } from "../plan.ts";
import { checkLiveProgram } from "../program-file.ts";
import type { Report } from "../report/report.ts";
import { type LoadedScenario, shown } from "../scenario/load.ts";
import type { Scenario } from "../scenario/schema.ts";
import { evaluate, type Measured, type Metric } from "../scenario/thresholds.ts";
import { durationMs } from "../scenario/units.ts";
import { shrink } from "../shrink/shrink.ts";
import type { Progress } from "../start/progress.ts";
import { run as runDemonstration } from "../start/run.ts";
import type { LoadedProgram } from "../world/program.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual, watched } from "./virtual.ts";

export interface RunScenarioOptions {
  seed: number;
  progress: Progress;
  signal: AbortSignal;
  shrinks: boolean;
  hardStopMs?: number;
  /** An external relay to use. */
  live?: string;
  /** Loaded already, for a replay. */
  programs?: ReadonlyMap<string, LoadedProgram>;
  /** Their texts, for a live replay. */
  sources?: Readonly<Record<string, string>>;
}

const SHRINK_MS = 30_000;
/** Calls to each device in the live world. */
const LIVE_CALLS = 5;

export async function runScenario(
  { scenario, folder }: LoadedScenario,
  options: RunScenarioOptions,
): Promise<Report> {
  const { seed, progress, signal, hardStopMs } = options;
  if (scenario.world === "live") return runLive(scenario, folder, options);
  const programs = options.programs ?? loadPrograms(scenario, folder);
  const seconds = durationMs(scenario.duration) / 1000;
  let done = 0;
  progress.start(`simulated seconds of "${scenario.name}", seed ${seed}`, seconds, () => done);
  const { report, violation } = await runVirtual(scenario, {
    seed,
    programs,
    signal,
    progress: (share) => {
      done = Math.round(share * seconds);
    },
    ...(hardStopMs === undefined ? {} : { hardStopMs }),
  });
  done = Math.round(Math.min(seconds, report.series.at(-1)?.at_s ?? 0));
  progress.end();
  if (violation === null || signal.aborted || !options.shrinks) return report;
  let tries = 0;
  progress.start("tries to find a smaller scenario", 100, () => tries);
  report.shrunk = await shrink(report.scenario, violation, {
    seed,
    programs,
    signal,
    budgetMs: SHRINK_MS,
    tried: (count) => {
      tries = count;
    },
  });
  progress.end();
  return report;
}

/** What a scenario may ask of this world is in scenario/check.ts. */
async function runLive(
  scenario: Scenario,
  folder: string,
  { live, seed, progress, signal }: RunScenarioOptions,
): Promise<Report> {
  if (live !== undefined) {
    throw new Failure(EXIT.usage, "--live against another relay is not available yet");
  }
  const [group] = scenario.devices;
  if (group?.program === undefined) throw new Error("a live scenario was not checked");
  const program = resolve(folder, group.program);
  const warning = await checkLiveProgram(program, shown(program));
  if (warning !== null) progress.say(warning);
  const calls = (scenario.clients ?? []).flatMap(({ call, params }) =>
    call === undefined ? [] : [{ method: call, ...(params === undefined ? {} : { params }) }],
  );
  const flags = {
    agents: group.count,
    callsPerAgent: Math.max(LIVE_CALLS, calls.length),
    reportDir: "",
    seed,
    json: false,
    program,
    calls,
  };
  const report = await runDemonstration(flags, progress, signal);
  const judged = watched(scenario).map(({ parsed, text }) => ({
    expression: text,
    ...evaluate(parsed, liveFigures(report)),
  }));
  const thresholds = [...report.thresholds, ...judged];
  const ok = report.stopped === null && thresholds.every((one) => one.ok);
  const trace = planHash(makePlan(scenario, seed));
  return { ...report, ok, thresholds, trace, scenario: { ...scenario, seed } };
}

/** The figures of a finished live run, as thresholds ask for them. */
function liveFigures({ agents, calls, latency_ms, failures }: Report): Measured {
  const counters: Partial<Record<Metric, number>> = {
    "call.sent": calls.sent,
    "call.ok": calls.ok,
    "call.failed": calls.failed,
    "call.wrong": failures.find(({ code }) => code === "WRONG_ANSWER")?.count ?? 0,
  };
  const online = { last: agents.connected, min: 0, max: agents.connected, avg: agents.connected };
  return {
    counter: (metric) => counters[metric] ?? 0,
    gauge: (metric) => (metric === "agents.online" ? online : null),
    trend: () =>
      latency_ms === null
        ? null
        : {
            // What a live report keeps; a percentile between two of them counts as the higher one.
            percentile: (p) =>
              p <= 50
                ? latency_ms.p50
                : p <= 95
                  ? latency_ms.p95
                  : p <= 99
                    ? latency_ms.p99
                    : latency_ms.max,
            min: Number.NaN,
            max: latency_ms.max,
            avg: Number.NaN,
            count: calls.ok,
          },
  };
}
