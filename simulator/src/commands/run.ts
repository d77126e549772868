/** `blindrelay-sim run`: runs a scenario with one seed or several, and writes its reports. */
import { existsSync } from "node:fs";
import { access, constants, rmdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { EXIT, Failure } from "@blindrelay/protocol/command-line";
import { makeFolder } from "@blindrelay/protocol/file-owner";
import { print } from "../base/output.ts";
import { replaceFile } from "../base/replace-file.ts";
import { annotationsOf } from "../report/annotations.ts";
import { renderHtml } from "../report/html.ts";
import { renderJunit } from "../report/junit.ts";
import { Progress } from "../report/progress.ts";
import { readReport } from "../report/read-report.ts";
import type { Report } from "../report/report.ts";
import { renderTable } from "../report/table.ts";
import { runJobs } from "../run/jobs.ts";
import { runScenario } from "../run/run.ts";
import { DEFAULT_AGENTS, override, parseCall, scenarioOf } from "../scenario/from-flags.ts";
import { checkScenario, type LoadedScenario, loadScenario } from "../scenario/load.ts";
import { makePlan } from "../scenario/plan.ts";
import { movedTo, writeScenario } from "../scenario/write.ts";
import { loadPrograms, relativeTo } from "../virtual/programs.ts";
import type { Crypto } from "../virtual/run.ts";
import { interrupted, interruptible } from "./interruptible.ts";

export interface RunFlags {
  seed?: number;
  seeds?: [number, number];
  world?: "virtual" | "live";
  crypto?: Crypto;
  live?: string;
  report?: string;
  compare?: string;
  junit?: string;
  json?: boolean;
  shrink: boolean;
  maxTime?: number;
  metricsPort?: number;
  jobs?: number;
  log?: string;
  shard?: readonly [number, number];
}

/** With what makes or changes a scenario. */
export interface AskedRun extends RunFlags {
  program?: string;
  stubs?: string;
  agents?: number;
  call: string[];
}

export async function run(what: string | undefined, flags: AskedRun): Promise<number> {
  if (flags.seed !== undefined && flags.seeds !== undefined) {
    throw new Failure("usage", "give either --seed or --seeds");
  }
  if (flags.shard !== undefined && flags.seeds === undefined) {
    throw new Failure("usage", "--shard is a share of --seeds A..B");
  }
  if (flags.live !== undefined && flags.world === "virtual") {
    throw new Failure("usage", "give either --live or --world virtual");
  }
  if (flags.compare !== undefined && flags.report === undefined) {
    throw new Failure("usage", "--compare is for report.html: give --report DIR too");
  }
  const loaded = await loadAsked(what, flags);
  if (flags.crypto === "model" && loaded.scenario.world === "live") {
    throw new Failure("usage", "--crypto model needs the virtual world: on sockets it is real");
  }
  if (flags.metricsPort !== undefined && loaded.scenario.world !== "live") {
    throw new Failure("usage", "--metrics-port needs the live world: a virtual run takes no time");
  }
  if (flags.log !== undefined) mustHave(loaded, flags.log);
  return runLoaded(loaded, flags);
}

/** Throws a Failure where `--log` names nobody. */
function mustHave({ scenario }: LoadedScenario, device: string): void {
  if (scenario.world === "live") {
    throw new Failure(
      "usage",
      "--log needs the virtual world: live, devices log to their own output",
    );
  }
  const ids = makePlan(scenario, scenario.seed ?? 1).devices.map(({ id }) => id);
  if (ids.includes(device)) return;
  throw new Failure("usage", `--log ${device}: there is no such device; the first is ${ids[0]}`);
}

export async function runLoaded(loaded: LoadedScenario, flags: RunFlags): Promise<number> {
  const earlier = flags.compare === undefined ? undefined : readReport(flags.compare);
  // Checked first, so that an unwritable report folder is found before a long run.
  const made = await reserve(flags);
  const first = flags.seed ?? loaded.scenario.seed ?? 1;
  const seeds = seedsOf(flags.seeds ?? [first, first], flags.shard);
  const exitCode = await interruptible((signal) =>
    runSeeds(loaded, flags, { seeds, earlier }, signal),
  );
  // Nothing but an empty folder goes.
  if (exitCode === EXIT.interrupted && made !== undefined) await rmdir(made).catch(() => undefined);
  return exitCode;
}

/** This machine's share of the seeds. */
function seedsOf(
  [from, to]: [number, number],
  [part, parts]: readonly [number, number] = [1, 1],
): number[] {
  const seeds: number[] = [];
  for (let seed = from + part - 1; seed <= to; seed += parts) seeds.push(seed);
  if (seeds.length > 0) return seeds;
  throw new Failure("usage", `--shard ${part}/${parts}: there are only ${to - from + 1} seeds`);
}

async function loadAsked(what: string | undefined, flags: AskedRun): Promise<LoadedScenario> {
  if (what === undefined) {
    const { program, agents = DEFAULT_AGENTS, call } = flags;
    if (program === undefined) {
      throw new Failure("usage", "give a scenario (see: blindrelay-sim list) or --program FILE");
    }
    const folder = process.cwd();
    const calls = call.map(usableCall);
    const isLive = flags.world === "live" || flags.live !== undefined;
    const world = isLive ? "live" : "virtual";
    const made = {
      ...scenarioOf(namedProgram(folder, program), agents, calls, world),
      ...stubsFrom(folder, flags.stubs),
    };
    if (isLive && calls.length === 0) {
      throw new Failure("usage", "the live world needs a call to make: --call METHOD[:JSON]");
    }
    return checkScenario(made, folder, "--program");
  }
  if (flags.call.length > 0) {
    throw new Failure("usage", "--call needs --program; a scenario names its own calls");
  }
  return loadScenario(what, (scenario, folder, report) => {
    const { program, agents, live } = flags;
    for (const [i, { kind }] of (scenario.faults ?? []).entries()) {
      if (live === undefined || !kind.startsWith("relay.")) continue;
      report(["faults", i, "kind"], `${kind} needs a relay of the simulator's own, not --live`);
    }
    const own = program === undefined ? undefined : namedProgram(folder, program);
    const world = live !== undefined ? "live" : (flags.world ?? scenario.world);
    const seed = flags.seed ?? flags.seeds?.[0] ?? scenario.seed ?? 1;
    return {
      ...override(scenario, own, agents),
      seed,
      ...(world === undefined ? {} : { world }),
      ...stubsFrom(folder, flags.stubs),
    };
  });
}

export function stubsFrom(folder: string, stubs: string | undefined): { stubs?: string } {
  return stubs === undefined ? {} : { stubs: named(folder, "--stubs", stubs) };
}

export const namedProgram = (folder: string, program: string): string =>
  named(folder, "--program", program);

/** A flag's file as a scenario in `folder` names it. Throws a Failure if there is none. */
function named(folder: string, flag: string, file: string): string {
  if (existsSync(file)) return relativeTo(folder, file);
  throw new Failure("usage", `${flag} ${file}: file not found`);
}

function usableCall(text: string) {
  try {
    return parseCall(text);
  } catch (error) {
    throw new Failure("usage", (error as Error).message);
  }
}

async function runSeeds(
  loaded: LoadedScenario,
  flags: RunFlags,
  { seeds, earlier }: { seeds: readonly number[]; earlier: Report | undefined },
  signal: AbortSignal,
): Promise<number> {
  const isLive = loaded.scenario.world === "live";
  const jobs = isLive ? 1 : Math.min(flags.jobs ?? availableParallelism(), seeds.length);
  const { shrink: shrinks, log, crypto, live, metricsPort, maxTime } = flags;
  const hardStopMs = maxTime === undefined ? undefined : maxTime * 1000;
  // Live, a run has all of this machine, and its jobs share the agents.
  const processes = isLive ? flags.jobs : undefined;
  const task = { shrinks, log, crypto, live, metricsPort, processes, hardStopMs };
  const reports: Report[] = [];
  const progress = new Progress(process.stderr);
  const take = async (report: Report): Promise<void> => {
    if (flags.seeds !== undefined) report.seeds = flags.seeds;
    reports.push(report);
    const { seed } = report;
    const folder = flags.report === undefined ? null : folderOf(flags.report, flags.seeds, seed);
    if (folder !== null) await writeReport(folder, report, earlier);
    if (folder !== null && report.shrunk !== null) {
      const file = join(folder, "shrunk.yaml");
      const { scenario, seed: own, detail } = report.shrunk;
      const moved = movedTo(folder, { ...scenario, seed: own, description: detail }, loaded.folder);
      await writeScenario(file, moved);
      progress.say(`the smallest scenario: blindrelay-sim run ${file}`);
    }
    printReport(report, folder, flags.json);
  };
  if (jobs > 1) {
    // Its mistakes are reported once.
    loadPrograms(loaded.scenario, loaded.folder);
    progress.start("seeds", seeds.length, () => reports.length);
    const ended = runJobs(seeds, jobs, { loaded, ...task }, signal, take);
    await ended.finally(() => progress.stop());
  } else {
    for (const seed of seeds) {
      if (signal.aborted) break;
      const report = await runScenario(loaded, { seed, progress, signal, ...task });
      if (!signal.aborted) await take(report);
    }
  }
  const exitCode = await finish(reports, flags.junit);
  return signal.aborted ? interrupted() : exitCode;
}

/** On standard output, for a person or a program. */
export function printReport(report: Report, folder: string | null, json = false): void {
  const where = folder === null ? "not kept (--report DIR)" : page(folder);
  print(json ? JSON.stringify(report) : renderTable(report, where));
}

/**
 * Writes what all reports make together, and says on GitHub what is broken; the exit code.
 * `missing`: what a run should have had too; null: nothing.
 */
export async function finish(
  reports: readonly Report[],
  junit?: string,
  missing: string | null = null,
): Promise<number> {
  if (junit !== undefined && reports.length > 0)
    await replaceFile(junit, renderJunit(reports, missing));
  if (process.env.GITHUB_ACTIONS === "true") {
    for (const line of reports.flatMap(annotationsOf)) process.stderr.write(`${line}\n`);
  }
  if (missing !== null) process.stderr.write(`blindrelay-sim: ${missing}\n`);
  return missing === null && reports.every(({ ok }) => ok) ? 0 : EXIT.expectation;
}

export async function writeReport(folder: string, report: Report, earlier?: Report): Promise<void> {
  makeFolder(folder, 0o777);
  await replaceFile(join(folder, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
  const command = `blindrelay-sim replay ${join(folder, "report.json")}`;
  await replaceFile(page(folder), renderHtml(report, command, earlier));
}

const page = (folder: string): string => join(folder, "report.html");

/** With several seeds, each has a folder of its own. */
function folderOf(folder: string, seeds: RunFlags["seeds"], seed: number): string {
  return seeds === undefined ? folder : join(folder, `seed-${seed}`);
}

/** The first folder that was made for reports; undefined if all were there. */
export async function reserve(flags: {
  report?: string;
  junit?: string;
  corpus?: string;
}): Promise<string | undefined> {
  const made =
    flags.report === undefined ? undefined : await reserveFolder(flags.report, "--report");
  if (flags.junit !== undefined) await reserveFolder(dirname(flags.junit), "--junit");
  if (flags.corpus !== undefined) await reserveFolder(flags.corpus, "--corpus");
  return made;
}

async function reserveFolder(folder: string, flag: string): Promise<string | undefined> {
  try {
    const made = makeFolder(folder, 0o777);
    await access(folder, constants.W_OK);
    return made;
  } catch (error) {
    throw new Failure("usage", `${flag} ${folder}: ${(error as Error).message}`);
  }
}
