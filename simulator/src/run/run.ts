/**
 * Runs a scenario in its world, from start to report; after a violation, searches for the smallest
 * scenario that reproduces it. Code that only live runs use is loaded with the first of them.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join, resolve } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import type { LiveOptions } from "../live/run.ts";
import { openFileLimit, openFileWarning } from "../report/machine.ts";
import type { Progress } from "../report/progress.ts";
import type { Report } from "../report/report.ts";
import { isValid, type LoadedScenario, shown } from "../scenario/load.ts";
import { makePlan, planHash } from "../scenario/plan.ts";
import { checkLiveProgram, readProgramFile } from "../scenario/program-file.ts";
import type { Scenario } from "../scenario/schema.ts";
import { durationMs } from "../scenario/units.ts";
import { brokenBy } from "../shrink/broken.ts";
import { shrink } from "../shrink/shrink.ts";
import type { LoadedProgram } from "../virtual/program.ts";
import { loadPrograms, programPaths } from "../virtual/programs.ts";
import { type Crypto, runVirtual } from "../virtual/run.ts";
import { STUCK_MS } from "../virtual/watchdog.ts";

export interface RunScenarioOptions {
  seed: number;
  progress: Progress;
  signal: AbortSignal;
  shrinks: boolean;
  /** In the virtual world; real by default. */
  crypto?: Crypto;
  /** Real time for the search for the smallest scenario. */
  shrinkMs?: number;
  hardStopMs?: number;
  /** Prints what this device logs on standard error. */
  log?: string;
  /** Of a live run: serves its figures on this port; 0 picks one. */
  metricsPort?: number;
  /** Of a live run: so many processes share the agents; defaults to 1. */
  processes?: number;
  /** An external relay to use. */
  live?: string;
  /** Loaded before, for a replay. */
  programs?: ReadonlyMap<string, LoadedProgram>;
  /** Their source texts, for a live replay. */
  sources?: Readonly<Record<string, string>>;
}

const SHRINK_MS = 30_000;
/** Enough for what happens in a fleet while a call waits. */
const KEPT_ENTRIES = 20_000;

const printLog =
  (wanted: string) =>
  (deviceId: string, atUs: number, text: string): void => {
    if (deviceId !== wanted) return;
    process.stderr.write(`${(atUs / 1e6).toFixed(6)}  ${deviceId}  ${text}\n`);
  };

export async function runScenario(
  { scenario, folder }: LoadedScenario,
  options: RunScenarioOptions,
): Promise<Report> {
  const { seed, progress, signal, hardStopMs, crypto = "real" } = options;
  if (scenario.world === "live") {
    return options.sources === undefined
      ? runInLive(scenario, folder, options)
      : replayInLive(scenario, options);
  }
  const programs = options.programs ?? loadPrograms(scenario, folder);
  const seconds = durationMs(scenario.duration) / 1000;
  let done = 0;
  let said = "starting";
  progress.start(
    `s of seed ${seed}`,
    seconds,
    () => done,
    () => said,
  );
  const result = await runVirtual(scenario, {
    seed,
    programs,
    signal,
    crypto,
    keptEntries: KEPT_ENTRIES,
    ...(options.log === undefined ? {} : { logged: printLog(options.log) }),
    progress: (share, line) => {
      done = Math.round(share * seconds);
      said = line;
    },
    ...(hardStopMs === undefined ? {} : { hardStopMs }),
    stuckMs: STUCK_MS,
  });
  const { report, world } = result;
  const broken = brokenBy(result);
  done = Math.round(Math.min(seconds, report.series.at(-1)?.at_s ?? 0));
  said = world.measured.inWords();
  progress.stop();
  if (broken === null || signal.aborted || !options.shrinks) return report;
  let tries = 0;
  progress.start("tries to find a smaller scenario", 100, () => tries);
  report.shrunk = await shrink(report.scenario, broken, {
    seed,
    programs,
    signal,
    crypto,
    budgetMs: options.shrinkMs ?? SHRINK_MS,
    stuckMs: STUCK_MS,
    isValid: (smaller) => isValid(smaller, folder),
    tried: (count) => {
      tries = count;
    },
  });
  progress.stop();
  return report;
}

/** Which scenarios this world supports is checked in scenario/check.ts. */
async function runInLive(
  scenario: Scenario,
  folder: string,
  { live, seed, progress, signal, hardStopMs, metricsPort, processes }: RunScenarioOptions,
): Promise<Report> {
  const engines = await findEngines(scenario, folder);
  const programs = await readLivePrograms(scenario, folder, (warning) => progress.say(warning));
  const count = scenario.devices.reduce((sum, group) => sum + group.count, 0);
  // The bundled relay holds them all in one process.
  const most = live === undefined ? count : Math.ceil(count / (processes ?? 1));
  const warning = openFileWarning(most, openFileLimit());
  if (warning !== null) progress.say(warning);
  const { runLive } = await import("../live/run.ts");
  const given = { seed, progress, signal, metricsPort, processes, hardStopMs };
  const report = await runLive(scenario, folder, { ...given, engines, url: live });
  return { ...report, programs };
}

/** Checked texts of its programs, by path. `warned`: where boards do not run them as written. */
export async function readLivePrograms(
  scenario: Scenario,
  folder: string,
  warned: (warning: string) => void,
): Promise<Record<string, string>> {
  const programs: Record<string, string> = {};
  for (const path of programPaths(scenario)) {
    const program = resolve(folder, path);
    const warning = await checkLiveProgram(program, shown(program));
    if (warning !== null) warned(warning);
    programs[path] = readProgramFile(program, shown(program));
  }
  return programs;
}

/**
 * The boards' engines that a scenario needs; checks that they run its programs. Throws a Failure
 * that says what to install, or a ScenarioError.
 */
async function findEngines(
  { devices }: Scenario,
  folder: string,
): Promise<NonNullable<LiveOptions["engines"]>> {
  const found: { xs?: string; espruino?: string } = {};
  if (devices.every(({ engine = "node" }) => engine === "node")) return found;
  const { findEspruino, findXs } = await import("@blindrelay/agent-sdk/engines");
  const { espruinoProgram, programFile, xsProgram } = await import("../live/board-programs.ts");
  for (const { group, engine = "node", kind, program } of devices) {
    if (engine === "node") continue;
    const file = programFile(program === undefined ? `kind:${kind}` : resolve(folder, program));
    if (engine === "xs") {
      xsProgram(file, shown(file), group);
      const xs = await findXs(folder);
      if (xs.kind === "missing") {
        throw new Failure("usage", `${group}: there is no XS engine here: ${xs.reason}`);
      }
      found.xs = xs.path;
    } else {
      await espruinoProgram(file, shown(file));
      const binary = findEspruino("ESPRUINO_BIN");
      if (binary === null) {
        throw new Failure(
          "usage",
          `${group}: set ESPRUINO_BIN to a Linux build of Espruino (RELEASE=1 make BOARD=LINUX)`,
        );
      }
      found.espruino = resolve(binary);
    }
  }
  return found;
}

/**
 * A live run from a report alone: its programs are written to files again, in a separate folder.
 */
async function replayInLive(scenario: Scenario, options: RunScenarioOptions): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), "blindrelay-replay-"));
  try {
    const names = new Map<string, string>();
    for (const [path, source] of Object.entries(options.sources ?? {})) {
      const name = `./${names.size + 1}${extname(path)}`;
      names.set(path, name);
      await writeFile(join(folder, name), source);
    }
    const devices = scenario.devices.map((group) =>
      group.program === undefined
        ? group
        : { ...group, program: names.get(group.program) ?? group.program },
    );
    const report = await runInLive({ ...scenario, devices }, folder, options);
    const trace = planHash(makePlan(scenario, options.seed));
    return { ...report, scenario: { ...scenario, seed: options.seed }, trace };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
