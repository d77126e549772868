/**
 * Shrinks a scenario that breaks an oracle, a threshold or an expectation to the smallest one found
 * that still breaks the same: shorter, fewer devices, fewer faults, fewer clients, fewer details.
 * Each try is a whole virtual run, and random streams belong to each device by name, so the rest
 * behaves as before.
 */

import type { Shrunk } from "../report/report.ts";
import { makePlan } from "../scenario/plan.ts";
import type { Scenario } from "../scenario/schema.ts";
import { durationMs } from "../scenario/units.ts";
import { type Guard, startGuard } from "../virtual/guard.ts";
import type { LoadedProgram } from "../virtual/program.ts";
import { type Crypto, playWorld, type VirtualResult } from "../virtual/run.ts";
import { type Broken, brokenBy } from "./broken.ts";

export interface ShrinkOptions {
  seed: number;
  programs: ReadonlyMap<string, LoadedProgram>;
  /** Real by default. */
  crypto?: Crypto;
  /** Real time for all tries. */
  budgetMs: number;
  /** Ends a try when a program has used this much CPU time without returning. */
  stuckMs?: number;
  signal?: AbortSignal;
  tried?: (tries: number, devices: number) => void;
  /** Whether a smaller scenario is one that can be run; default: all are. */
  isValid?: (scenario: Scenario) => boolean;
}

/** After the violation, so that what follows from it is in the trace too. */
const SLACK_S = 1;
const KEPT = 5_000;
const SHOWN = 30;

export async function shrink(
  scenario: Scenario,
  broken: Broken,
  options: ShrinkOptions,
): Promise<Shrunk | null> {
  const guard = await startGuard([...options.programs.values()], options.stuckMs);
  return shrinkGuarded(scenario, broken, options, guard).finally(() => guard.stop());
}

/** The same with a guard that runs. */
export async function shrinkGuarded(
  scenario: Scenario,
  wanted: Broken,
  options: ShrinkOptions,
  guard: Guard,
): Promise<Shrunk | null> {
  const endsAt = performance.now() + options.budgetMs;
  let best = pinned(scenario, options.seed);
  let broken = wanted;
  let tries = 0;
  const left = (): number => endsAt - performance.now();

  /** Takes `smaller` where it still breaks the same oracle. */
  async function holds(smaller: Scenario): Promise<boolean> {
    if (left() <= 0 || options.signal?.aborted) return false;
    if (options.isValid?.(smaller) === false) return false;
    tries += 1;
    options.tried?.(tries, size(best));
    const found = brokenBy(await tryOnce(smaller, options, guard, left()), wanted);
    if (found === null) return false;
    best = smaller;
    broken = found;
    return true;
  }

  await shorter();
  for (let changed = true; changed && left() > 0; ) {
    const before = weight(best);
    // Devices first: each one less makes every later try quicker.
    for (const { group } of best.devices) {
      if (best.devices.length > 1) {
        const without = best.devices.filter((one) => one.group !== group);
        if (await holds(usable({ ...best, devices: without }))) continue;
      }
      await fewer(group);
    }
    // Halves first, then one by one.
    for (const list of ["faults", "clients", "drivers", "invariants"] as const) {
      for (let step = best[list]?.length ?? 0; step >= 1; step = Math.floor(step / 2)) {
        for (let at = 0; at < (best[list]?.length ?? 0); ) {
          const kept = (best[list] ?? []).filter((_, i) => i < at || i >= at + step);
          if (!(await holds(usable({ ...best, [list]: kept })))) at += step;
          if (left() <= 0) break;
        }
      }
    }
    await shorter();
    changed = weight(best) < before;
  }
  for (const plainer of withoutDetails(() => best)) {
    if (left() <= 0) break;
    await holds(plainer);
  }

  /** Until a moment after what broke; a threshold is judged at the end, so by halves. */
  async function shorter(): Promise<void> {
    const { atUs } = broken;
    if (atUs !== null) {
      await holds(cutShort(best, atUs));
      return;
    }
    for (let halves = true; halves && left() > 0; ) {
      const seconds = Math.floor(durationMs(best.duration) / 2000);
      halves = seconds > 0 && (await holds(endingAt(best, seconds)));
    }
  }

  /**
   * Halves a group as long as one half still does it, then looks for the smallest number from the
   * first on.
   */
  async function fewer(group: string): Promise<void> {
    for (let halves = true; halves && left() > 0; ) {
      const { first = 1, count } = best.devices.find((one) => one.group === group) ?? { count: 1 };
      if (count < 2) return;
      const half = Math.ceil(count / 2);
      halves =
        (await holds(withRange(best, group, first, half))) ||
        (await holds(withRange(best, group, first + half, count - half)));
    }
    let low = 0;
    let high = best.devices.find((one) => one.group === group)?.count ?? 1;
    while (high - low > 1 && left() > 0) {
      const middle = low === 0 ? Math.max(1, Math.floor(high / 4)) : Math.floor((low + high) / 2);
      const { first = 1 } = best.devices.find((one) => one.group === group) ?? {};
      if (await holds(withRange(best, group, first, middle))) high = middle;
      else low = middle;
    }
  }

  const final = await tryOnce(best, options, guard, Math.max(left(), 60_000), KEPT);
  const last = brokenBy(final, wanted);
  if (last === null) return null;
  return {
    scenario: best,
    seed: options.seed,
    trace: final.report.trace,
    detail: last.detail,
    lines: linesOf(last, final),
  };
}

/** What the broken call went through, or else what came last. */
const linesOf = ({ oracle }: Broken, { report, world }: VirtualResult): string[] => {
  const [timeline] = oracle === "answers" ? (report.timelines ?? []) : [];
  return timeline?.lines.slice(-SHOWN) ?? world.lastEvents(SHOWN);
};

/** Nothing is broken if a program did not return. */
function tryOnce(
  scenario: Scenario,
  { seed, programs, signal, crypto }: ShrinkOptions,
  guard: Guard,
  hardStopMs: number,
  keptEntries = 0,
): Promise<VirtualResult> {
  const asked = {
    seed,
    programs,
    keptEntries,
    hardStopMs,
    ...(signal === undefined ? {} : { signal }),
    ...(crypto === undefined ? {} : { crypto }),
  };
  return playWorld(scenario, asked, guard);
}

const size = (scenario: Scenario): number =>
  scenario.devices.reduce((sum, { count }) => sum + count, 0);

const weight = (scenario: Scenario): number =>
  size(scenario) +
  (scenario.faults?.length ?? 0) +
  (scenario.clients?.length ?? 0) +
  (scenario.drivers?.length ?? 0) +
  (scenario.invariants?.length ?? 0) +
  durationMs(scenario.duration) / 1e9;

/**
 * What depends on the whole is written down before parts are taken away: the names of clients, and
 * when they begin.
 */
const pinned = (scenario: Scenario, seed: number): Scenario => {
  const { loads } = makePlan(scenario, seed);
  const clients = (scenario.clients ?? []).map((client, i) => {
    const { name, fromUs } = loads[i] as (typeof loads)[number];
    return { ...client, name, from: `${Math.ceil(fromUs / 1000)}ms` };
  });
  return { ...scenario, clients };
};

const withRange = (scenario: Scenario, group: string, first: number, count: number): Scenario => ({
  ...scenario,
  devices: scenario.devices.map((one) => (one.group === group ? { ...one, first, count } : one)),
});

/** Ends a moment after the violation, without what is judged at the end. */
const cutShort = (scenario: Scenario, atUs: number): Scenario => {
  const seconds = Math.max(1, Math.ceil(atUs / 1e6) + SLACK_S);
  return { ...endingAt(scenario, seconds), thresholds: [], phases: [] };
};

/** What would begin later is left out. */
const endingAt = (scenario: Scenario, seconds: number): Scenario => {
  const isWithin = (text: string | undefined): boolean =>
    text === undefined || durationMs(text) < seconds * 1000;
  return {
    ...scenario,
    duration: `${seconds}s`,
    faults: (scenario.faults ?? []).filter(({ at }) => isWithin(at)),
    drivers: (scenario.drivers ?? []).filter(({ from }) => isWithin(from)),
    clients: (scenario.clients ?? []).map(({ until, ...rest }) =>
      isWithin(until) && until !== undefined ? { ...rest, until } : rest,
    ),
  };
};

/** What a scenario can do without, one at a time: `now` is the smallest one so far. */
function* withoutDetails(now: () => Scenario): Generator<Scenario> {
  // What is allowed stays: without it, what is no fault would break the run too.
  for (const key of ["relay", "network", "same", "start", "timezone"] as const) {
    const { [key]: one, ...rest } = now();
    if (one !== undefined) yield rest;
  }
  for (const list of ["devices", "clients", "faults", "drivers"] as const) {
    for (let i = 0; i < (now()[list]?.length ?? 0); i++) {
      for (const key of Object.keys(now()[list]?.[i] ?? {})) {
        if (NEEDED.includes(key)) continue;
        const items = now()[list] as readonly object[];
        const plainer = items.map((item, k) => {
          const { [key]: _, ...rest } = item as Record<string, unknown>;
          return k === i ? rest : item;
        });
        yield { ...now(), [list]: plainer } as Scenario;
      }
    }
  }
}

/** Without these, a scenario would be another one, or none. */
const NEEDED = [
  ...["group", "count", "first", "kind", "program", "account", "at", "name", "devices", "from"],
  ...["every", "rate", "calls", "call", "steps", "params", "expect", "messages", "attack", "by"],
];

/** Without what names a group that is gone; clients keep the moment at which they begin. */
const usable = (scenario: Scenario): Scenario => {
  const groups = new Set(scenario.devices.map(({ group }) => group));
  const names = new Set((scenario.clients ?? []).map(({ name }, i) => name ?? `clients-${i + 1}`));
  return {
    ...scenario,
    clients: (scenario.clients ?? []).filter(({ devices }) => groups.has(devices)),
    drivers: (scenario.drivers ?? []).filter(
      ({ devices }) => devices === undefined || groups.has(devices),
    ),
    invariants: (scenario.invariants ?? []).filter(({ devices }) => groups.has(devices)),
    faults: (scenario.faults ?? []).filter(
      ({ devices, clients }) =>
        (devices === undefined || groups.has(devices)) &&
        (clients === undefined || names.has(clients)),
    ),
  };
};
