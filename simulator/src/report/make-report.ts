/** Makes the report of a run, of either world, and judges it. */
import { phasesOf } from "../scenario/phases.ts";
import { makesCalls, type Plan, plannedCalls, plannedOf } from "../scenario/plan.ts";
import type { Allowed, Scenario } from "../scenario/schema.ts";
import { shareOf } from "../scenario/units.ts";
import { machine } from "./machine.ts";
import type { Measurements } from "./measure.ts";
import type { FailureCount, KindResult, OracleResult, Report } from "./report.ts";
import { covers } from "./tally.ts";
import { judge, type Threshold } from "./thresholds.ts";

/** What differs between the worlds, as the report names it. */
type Own = Pick<
  Report,
  "world" | "crypto" | "relay" | "simulator" | "dropped" | "programs" | "trace"
>;

export interface RunFacts extends Own {
  scenario: Scenario;
  plan: Plan;
  thresholds: readonly Threshold[];
  startedAt: Date;
  /** The run's own time at its end, and how long it took, in seconds. */
  ranS: number;
  tookS: number;
  stopped: string | null;
  measured: Measurements;
  /** Devices that are online at the end, by group. */
  connected: ReadonlyMap<string, number>;
  /** Of devices whose engine tells it, the least by group, in bytes. */
  freeMemory?: ReadonlyMap<string, number>;
  oracles: OracleResult[];
  /** Failures that are neither calls' nor programs'. */
  failures?: FailureCount[];
}

export function makeReport(facts: RunFacts): Report {
  const { scenario, plan, measured, stopped, oracles, ranS } = facts;
  const { tally } = measured;
  tally.endOpen();
  const planned = plannedOf(plan);
  const failures = tally.failures(planned);
  const thresholds = judge(facts.thresholds, measured);
  // A run that was stopped has not made its calls for that reason.
  const answers = stopped === null ? [judgeAnswers(scenario, plan, failures)] : [];
  const judged = [...oracles, measured.programErrors.judge(scenario.allow), ...answers];
  const kinds = kindsOf(facts);
  return {
    ok: stopped === null && [...thresholds, ...judged].every(({ ok }) => ok),
    stopped,
    seed: plan.seed,
    started_at: facts.startedAt.toISOString(),
    duration_s: Number(facts.tookS.toFixed(3)),
    agents: {
      requested: plan.devices.length,
      connected: kinds.reduce((sum, { connected }) => sum + connected, 0),
    },
    calls: { planned, sent: tally.sent, ok: tally.ok, failed: planned - tally.ok },
    latency_ms: tally.latency.summary(),
    first_call_latency_ms: tally.first.summary(),
    lateness_ms: tally.lateness.summary(),
    calls_per_second: tally.callsPerSecond(),
    relay: facts.relay,
    simulator: facts.simulator,
    thresholds,
    kinds,
    failures: [...failures, ...measured.programErrors.all(), ...(facts.failures ?? [])],
    phases: phases(scenario, ranS),
    series: measured.series,
    histogram: tally.buckets.histogram(),
    heat: tally.heatMap.result(),
    outliers: tally.outliers(),
    machine: machine(),
    world: facts.world,
    crypto: facts.crypto,
    scenario: { ...scenario, seed: plan.seed },
    programs: facts.programs,
    trace: facts.trace,
    oracles: judged,
    faults: plan.faults.map(({ spec, atUs, endUs }) => ({
      kind: spec.kind,
      at_s: atUs / 1e6,
      until_s: endUs / 1e6,
    })),
    dropped: facts.dropped,
    shrunk: null,
  };
}

/** Every planned call was made and answered rightly, but for what the scenario allows. */
function judgeAnswers(
  { allow = [] }: Scenario,
  plan: Plan,
  failures: readonly FailureCount[],
): OracleResult {
  const name = "answers";
  const idle = plan.loads.find((load) => makesCalls(load) && plannedCalls(load) === 0);
  if (idle !== undefined) {
    return { name, ok: false, detail: `with this seed, ${idle.name} makes no call at all` };
  }
  const planned = plannedOf(plan);
  const rest = new Map(
    allow.map((entry) => [
      entry,
      entry.rate === undefined ? Number.POSITIVE_INFINITY : shareOf(entry.rate) * planned,
    ]),
  );
  /** What is left of `count` failures; an entry allows each of its calls once. */
  const after = (count: number, entries: readonly Allowed[]): number => {
    let over = count;
    for (const entry of entries) {
      const most = rest.get(entry) ?? 0;
      rest.set(entry, most - Math.min(over, most));
      over -= Math.min(over, most);
    }
    // 29 % of 100 calls come to 28.999999999999996.
    return Math.ceil(over - 1e-6);
  };
  // "REMOTE 7" comes before REMOTE, which others may need.
  const narrow = [...allow].sort((a, b) => (b.code ?? "").length - (a.code ?? "").length);
  const left = failures.flatMap(({ code, count, example }) => {
    const own = narrow.filter((entry) => entry.code !== undefined && covers(entry.code, code));
    const over = after(count, own);
    return over > 0 ? [{ code, count: over, example }] : [];
  });
  const over = left.reduce((sum, { count }) => sum + count, 0);
  if (
    after(
      over,
      allow.filter(({ code }) => code === undefined),
    ) === 0
  ) {
    const but = allow.length === 0 ? "" : ", but for what the scenario allows";
    const detail = `every planned call was made, opened, verified and answered rightly${but}`;
    return { name, ok: true, detail };
  }
  // What was not made mostly follows from another failure.
  left.sort((a, b) => Number(a.code === "NOT_MADE") - Number(b.code === "NOT_MADE"));
  const codes = left.map(({ code, count }) => `${code} ${count}`).join(", ");
  const detail = `of ${planned} calls, more failed than the scenario allows: ${codes} (${left[0]?.example})`;
  return { name, ok: false, detail };
}

function kindsOf({ plan, measured, connected, freeMemory }: RunFacts): KindResult[] {
  const groups = new Map<string, number>();
  for (const { group } of plan.devices) groups.set(group, (groups.get(group) ?? 0) + 1);
  return [...groups].map(([kind, agents]) => {
    const { calls, ok, latency } = measured.tally.kind(kind);
    const online = connected.get(kind) ?? 0;
    const free = freeMemory?.get(kind);
    const memory = free === undefined ? {} : { free_memory_bytes: free };
    return { kind, agents, connected: online, calls, ok, latency_ms: latency.summary(), ...memory };
  });
}

function phases(scenario: Scenario, seconds: number): Report["phases"] {
  const at = (ms: number): number => Math.min(ms / 1000, seconds);
  return phasesOf(scenario).map(({ name, fromMs, untilMs }) => ({
    name,
    seconds: at(untilMs) - at(fromMs),
  }));
}
