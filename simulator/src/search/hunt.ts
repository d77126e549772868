/**
 * One job of a search: plays one case after another, drawn from its seed and number, and makes what
 * it finds small. With the same seed, job and corpus it plays the same cases, until one ends it.
 */
import { Stream } from "../base/random-streams.ts";
import { isValid } from "../scenario/load.ts";
import type { Scenario } from "../scenario/schema.ts";
import { type Broken, brokenBy } from "../shrink/broken.ts";
import { shrinkGuarded } from "../shrink/shrink.ts";
import { type Guard, startGuard } from "../virtual/guard.ts";
import type { LoadedProgram } from "../virtual/program.ts";
import { playWorld } from "../virtual/run.ts";
import { STUCK_MS } from "../virtual/watchdog.ts";
import { type Base, Drawing } from "./draw.ts";
import { bucketOf, type Finding } from "./findings.ts";
import { Novelty } from "./novelty.ts";

export interface HuntOptions {
  readonly seed: number;
  /** Numbered from 0. */
  readonly job: number;
  /** The number of its first case. */
  readonly from: number;
  readonly base?: Base;
  readonly programs: ReadonlyMap<string, LoadedProgram>;
  /** What the programs' paths are relative to. */
  readonly folder: string;
  /** This job's share of the corpus is played first; all of it is changed further. */
  readonly corpus: readonly Scenario[];
  readonly jobs: number;
  readonly known: ReadonlySet<string>;
  /** Of `performance.now()`. */
  readonly endsAt: number;
  readonly signal: AbortSignal;
}

export interface HuntEvents {
  begun(number: number, scenario: Scenario, seed: number): void;
  played(cases: number, triples: number): void;
  found(finding: Finding): void;
  /** A case that showed something new. */
  kept(scenario: Scenario, seed: number): void;
  /** What is no finding, but worth a line. */
  said(text: string): void;
}

/** Of CPU time: a case that takes longer is given up. */
const CASE_MS = 20_000;
const SHRINK_MS = 45_000;
/** After the end, for what was found just before it. */
const GRACE_MS = 5_000;
/** One case in so many is played in every way, which takes five times as long. */
const SAME_EVERY = 12;
const MUTANTS_PERCENT = 50;
/**
 * Of all events, at most this share is of drawn cases with serial ports: each has many times as
 * many as another case.
 */
const SERIAL_SHARE = 0.25;
const MAX_KEPT = 500;
const MAX_SEED = 2 ** 31;

export async function hunt(options: HuntOptions, events: HuntEvents): Promise<void> {
  const guard = await startGuard([...options.programs.values()], STUCK_MS);
  try {
    await huntGuarded(options, events, guard);
  } finally {
    guard.stop();
  }
}

/** The same with a guard that runs. */
export async function huntGuarded(
  options: HuntOptions,
  events: HuntEvents,
  guard: Guard,
): Promise<void> {
  const { seed, job, from, jobs, base, folder, corpus, signal, endsAt, programs } = options;
  const novelty = new Novelty();
  const found = new Set(options.known);
  const kept = [...corpus];
  const first = corpus.filter((_, i) => i % jobs === job);
  const spent = { all: 0, serial: 0 };
  for (let number = from; performance.now() < endsAt && !signal.aborted; number++) {
    const drawing = new Drawing(new Stream(`search ${seed}/${job}/${number}`));
    const own = first[number];
    const isMutant = kept.length > 0 && drawing.likely(MUTANTS_PERCENT);
    const name = `search ${seed}/${job}/${number}`;
    const drawn =
      own ??
      (isMutant ? { ...drawing.mutant(drawing.one(kept)), name } : drawing.scenario(name, base));
    const isSerial = (drawn.drivers ?? []).some(({ kind }) => kind === "serial");
    if (isSerial && own === undefined && spent.serial >= spent.all * SERIAL_SHARE) continue;
    const scenario = number % SAME_EVERY === SAME_EVERY - 1 ? { ...drawn, same: true } : drawn;
    const caseSeed = own?.seed ?? drawing.below(MAX_SEED);
    if (!isValid(scenario, folder)) continue;
    novelty.begin();
    events.begun(number, scenario, caseSeed);
    const asked = { seed: caseSeed, programs, signal, cpuStopMs: CASE_MS, watch: novelty.watch };
    const result = await playWorld(scenario, { ...asked, crypto: "model" }, guard);
    const { played } = result.world.clock;
    spent.all += played;
    if (isSerial) spent.serial += played;
    events.played(number + 1, novelty.size);
    if (signal.aborted) return;
    if (result.stuck !== null) {
      // As it was drawn: each try to make it smaller would take as long.
      const finding = { oracle: "stuck", detail: result.stuck, seed: caseSeed, scenario };
      if (!found.has(bucketOf(finding))) events.found(finding);
      found.add(bucketOf(finding));
      continue;
    }
    const broken = brokenBy(result);
    if (broken !== null) {
      if (found.has(bucketOf(broken))) continue;
      found.add(bucketOf(broken));
      const finding = await small(scenario, caseSeed, broken, options, guard);
      if (finding === null)
        events.said(`not with real cryptography: ${bucketOf(broken)} (${name})`);
      else {
        found.add(bucketOf(finding));
        events.found(finding);
      }
    } else if (novelty.fresh > 0 && own === undefined && kept.length < MAX_KEPT) {
      kept.push(drawn);
      events.kept(drawn, caseSeed);
    }
  }
}

/** The smallest scenario that breaks the same with real cryptography; null: none does. */
async function small(
  scenario: Scenario,
  seed: number,
  broken: Broken,
  { programs, folder, signal, endsAt }: HuntOptions,
  guard: Guard,
): Promise<Finding | null> {
  const leftMs = Math.max(GRACE_MS, endsAt - performance.now());
  const shrunk = await shrinkGuarded(
    scenario,
    broken,
    {
      seed,
      programs,
      signal,
      crypto: "model",
      budgetMs: Math.min(SHRINK_MS, leftMs),
      isValid: (smaller) => isValid(smaller, folder),
    },
    guard,
  );
  for (const candidate of shrunk === null ? [scenario] : [shrunk.scenario, scenario]) {
    const real = { seed, programs, cpuStopMs: CASE_MS, crypto: "real" } as const;
    const again = brokenBy(await playWorld(candidate, real, guard), broken);
    if (again === null) continue;
    return { oracle: again.oracle, detail: again.detail, seed, scenario: candidate };
  }
  return null;
}
