/** The commands of `blindrelay-sim`, their flags and help. */
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, extname, join, resolve } from "node:path";
import { parseJson } from "@blindrelay/protocol/parse-json";
import { Command, CommanderError, InvalidArgumentError } from "commander";
import pkg from "../package.json" with { type: "json" };
import { EXIT, Failure } from "./failure.ts";
import { describePlan, makePlan } from "./plan.ts";
import { makeFolder } from "./report/folder.ts";
import { renderHtml } from "./report/html.ts";
import type { Report } from "./report/report.ts";
import { renderTable } from "./report/table.ts";
import { renderJunit } from "./run/junit.ts";
import { loadPrograms, relativeTo, restorePrograms } from "./run/programs.ts";
import { runScenario } from "./run/run.ts";
import { override, parseCall, scenarioOf } from "./scenario/from-flags.ts";
import { checkScenario, type LoadedScenario, listLibrary, loadScenario } from "./scenario/load.ts";
import { ScenarioError } from "./scenario/problems.ts";
import { jsonSchema, MAX_DEVICES, MAX_SEED } from "./scenario/schema.ts";
import { Progress } from "./start/progress.ts";

interface RunFlags {
  seed?: number;
  seeds?: [number, number];
  world?: "virtual" | "live";
  live?: string;
  report?: string;
  compare?: string;
  junit?: string;
  json?: boolean;
  program?: string;
  agents?: number;
  call: string[];
  shrink: boolean;
  maxTime?: number;
}

const MAX_SEEDS = 10_000;
const DEFAULT_AGENTS = 100;

/** Runs the command of this process; resolves with its exit code. */
export async function makeProgram(args = process.argv): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = new Command("blindrelay-sim")
    .description("Fleets of simulated blindrelay devices that find bugs, in CI.")
    .version(pkg.version)
    .exitOverride()
    .addHelpText(
      "after",
      `
Examples:
  blindrelay-sim run --program ./pump.js --agents 500 --call pump.state
  blindrelay-sim run ./two-rooms.yaml --seeds 1..8 --junit report/junit.xml
  blindrelay-sim replay report/report.json

Exit codes: 0 done, 1 a threshold or an oracle was broken, 2 usage or an invalid scenario, 4 the relay cannot be reached, 5 refused, 70 a fault of ours or output that cannot be written, 130 interrupted.`,
    );

  program
    .command("run")
    .description("run a scenario, or a device program without one")
    .argument("[scenario]", "a .yaml, .ts or .js file, or a name from the library")
    .option("--program <file>", "a device program; replaces that of a scenario")
    .option(
      "--agents <n>",
      `how many devices (without a scenario: ${DEFAULT_AGENTS})`,
      wholeNumber(1, MAX_DEVICES),
    )
    .option("--call <method[:json]>", "what to call on each device; may be repeated", collect, [])
    .option(
      "--seed <n>",
      "seed of all random draws (default: the scenario's, or 1)",
      wholeNumber(0, MAX_SEED),
    )
    .option("--seeds <a..b>", "one run for each seed", seedRange)
    .option(
      "--world <world>",
      "virtual (the default), or live: real sockets",
      oneOf("virtual", "live"),
    )
    .option(
      "--live <url>",
      "live, against this external relay; its account token is in BLINDRELAY_ACCOUNT_TOKEN",
      httpAddress,
    )
    .option("--report <dir>", "report.json and report.html go here")
    .option("--compare <report>", "report.html compares with this earlier report (with --report)")
    .option("--junit <file>", "JUnit XML for CI")
    .option("--json", "print the report on standard output, one line per run")
    .option("--no-shrink", "do not look for the smallest scenario after a violation")
    .option("--max-time <s>", "end each run after this many real seconds", wholeNumber(1, 86_400))
    .addHelpText(
      "after",
      `
Examples:
  blindrelay-sim run --program ./pump.js --agents 500 --call pump.state
  blindrelay-sim run --program ./valve.js --call 'valve.open:{"percent":40}' --world live
  blindrelay-sim run ./two-rooms.yaml --live https://relay.example
  blindrelay-sim run morning-rush --seed 7 --report report
  blindrelay-sim run ./two-rooms.yaml --seeds 1..8 --junit report/junit.xml`,
    )
    .action(async (what: string | undefined, flags: RunFlags) => {
      exitCode = await run(what, flags);
    });

  program
    .command("replay")
    .description("repeat the run of a report.json; exits with 0 if trace and outcome are the same")
    .argument("<report>", "a report.json, or its folder")
    .option("--shrunk", "repeat the smallest scenario that the run found instead")
    .option("--json", "the new report on standard output")
    .addHelpText("after", "\nExample:\n  blindrelay-sim replay report/report.json")
    .action(async (path: string, flags: { shrunk?: boolean; json?: boolean }) => {
      exitCode = await replay(path, flags);
    });

  program
    .command("validate")
    .description("check a scenario and the programs it names")
    .argument("<scenario>", "a file, or a name from the library")
    .option("--plan", "print what will happen when")
    .option("--seed <n>", "for --plan", wholeNumber(0, MAX_SEED))
    .option("--json", "one JSON document")
    .addHelpText("after", "\nExample:\n  blindrelay-sim validate ./two-rooms.yaml --plan")
    .action(async (what: string, flags: { plan?: boolean; seed?: number; json?: boolean }) => {
      const loaded = await loadScenario(what);
      if (loaded.scenario.world !== "live") loadPrograms(loaded.scenario, loaded.folder);
      const plan = makePlan(loaded.scenario, flags.seed ?? loaded.scenario.seed ?? 1);
      if (flags.json)
        print(JSON.stringify(flags.plan ? plan : { ok: true, name: loaded.scenario.name }));
      else if (flags.plan) print(describePlan(plan).join("\n"));
      else print(`${loaded.file}: a valid scenario`);
    });

  program
    .command("schema")
    .description("the JSON Schema of scenarios, for editors")
    .addHelpText("after", "\nExample:\n  blindrelay-sim schema > scenario.schema.json")
    .action(() => print(JSON.stringify(jsonSchema(), null, 2)));

  program
    .command("list")
    .description("the scenarios of the library")
    .option("--json", "one JSON document")
    .addHelpText("after", "\nExample:\n  blindrelay-sim list")
    .action((flags: { json?: boolean }) => {
      const entries = listLibrary();
      if (flags.json) print(JSON.stringify(entries));
      else {
        const width = Math.max(...entries.map(({ name }) => name.length));
        print(
          entries
            .map(({ name, description }) => `${name.padEnd(width)}  ${description}`)
            .join("\n"),
        );
      }
    });

  await program.parseAsync(args);
  return exitCode;
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof ScenarioError) {
    process.stderr.write(`${error.message}\n`);
    return EXIT.usage;
  }
  if (error instanceof Failure) {
    process.stderr.write(`blindrelay-sim: ${error.message}\n`);
    return error.exitCode;
  }
  process.stderr.write(
    `blindrelay-sim: a bug in blindrelay: ${(error as Error)?.stack ?? error}\n`,
  );
  return EXIT.fault;
}

async function loadAsked(what: string | undefined, flags: RunFlags): Promise<LoadedScenario> {
  if (what === undefined) {
    const { program, agents = DEFAULT_AGENTS, call } = flags;
    if (program === undefined) {
      throw new Failure(EXIT.usage, "give a scenario (see: blindrelay-sim list) or --program FILE");
    }
    const folder = process.cwd();
    const calls = call.map(usableCall);
    const isLive = flags.world === "live" || flags.live !== undefined;
    const world = isLive ? "live" : "virtual";
    const made = scenarioOf(namedProgram(folder, program), agents, calls, world);
    if (isLive && calls.length === 0) {
      throw new Failure(EXIT.usage, "the live world needs a call to make: --call METHOD[:JSON]");
    }
    return checkScenario(made, folder, "--program");
  }
  if (flags.call.length > 0) {
    throw new Failure(EXIT.usage, "--call needs --program; a scenario names its own calls");
  }
  return loadScenario(what, (scenario, folder, report) => {
    const { program, agents, live } = flags;
    for (const [i, { kind }] of (scenario.faults ?? []).entries()) {
      if (live === undefined || !kind.startsWith("relay.")) continue;
      report(["faults", i, "kind"], `${kind} needs a relay of the simulator's own, not --live`);
    }
    const own = program === undefined ? undefined : namedProgram(folder, program);
    const world = live !== undefined ? "live" : (flags.world ?? scenario.world);
    return { ...override(scenario, own, agents), ...(world === undefined ? {} : { world }) };
  });
}

/** The `--program` as a scenario in `folder` would name it. Throws a Failure if there is none. */
function namedProgram(folder: string, program: string): string {
  if (existsSync(program)) return relativeTo(folder, program);
  throw new Failure(EXIT.usage, `--program ${program}: file not found`);
}

function usableCall(text: string) {
  try {
    return parseCall(text);
  } catch (error) {
    throw new Failure(EXIT.usage, (error as Error).message);
  }
}

async function run(what: string | undefined, flags: RunFlags): Promise<number> {
  if (flags.seed !== undefined && flags.seeds !== undefined) {
    throw new Failure(EXIT.usage, "give either --seed or --seeds");
  }
  if (flags.live !== undefined && flags.world === "virtual") {
    throw new Failure(EXIT.usage, "give either --live or --world virtual");
  }
  if (flags.compare !== undefined && flags.report === undefined) {
    throw new Failure(EXIT.usage, "--compare is for report.html: give --report DIR too");
  }
  const earlier = flags.compare === undefined ? undefined : readReport(flags.compare);
  const loaded = await loadAsked(what, flags);
  // Checked first, so that an unwritable report folder is found before a long run.
  if (flags.report !== undefined) await reserveFolder(flags.report, "--report");
  if (flags.junit !== undefined) await reserveFolder(dirname(flags.junit), "--junit");
  const first = flags.seed ?? loaded.scenario.seed ?? 1;
  const [from, to] = flags.seeds ?? [first, first];
  return interruptible((signal) => runSeeds(loaded, flags, { from, to, earlier }, signal));
}

async function runSeeds(
  loaded: LoadedScenario,
  flags: RunFlags,
  { from, to, earlier }: { from: number; to: number; earlier: Report | undefined },
  signal: AbortSignal,
): Promise<number> {
  const reports: Report[] = [];
  for (let seed = from; seed <= to && !signal.aborted; seed++) {
    const progress = new Progress(process.stderr);
    const report = await runScenario(loaded, {
      seed,
      progress,
      signal,
      shrinks: flags.shrink,
      ...(flags.live === undefined ? {} : { live: flags.live }),
      ...(flags.maxTime === undefined ? {} : { hardStopMs: flags.maxTime * 1000 }),
    });
    if (signal.aborted) break;
    reports.push(report);
    const folder = flags.report === undefined ? null : folderOf(flags.report, flags.seeds, seed);
    if (folder !== null) await writeReport(folder, report, earlier);
    print(
      flags.json
        ? JSON.stringify(report)
        : renderTable(report, folder ?? "not kept (--report DIR)"),
    );
  }
  if (flags.junit !== undefined && reports.length > 0) {
    await write(flags.junit, renderJunit(reports));
  }
  if (signal.aborted) return interrupted();
  return reports.every(({ ok }) => ok) ? EXIT.ok : EXIT.failed;
}

function interrupted(): number {
  console.error("blindrelay-sim: interrupted");
  return EXIT.interrupted;
}

interface ReplayFlags {
  shrunk?: boolean;
  json?: boolean;
}

function replay(path: string, flags: ReplayFlags): Promise<number> {
  return interruptible((signal) => replayReport(path, flags, signal));
}

async function replayReport(
  path: string,
  flags: ReplayFlags,
  signal: AbortSignal,
): Promise<number> {
  const before = readReport(path);
  const whole = { scenario: before.scenario, seed: before.seed, trace: before.trace };
  const wanted = flags.shrunk ? before.shrunk : whole;
  if (wanted === null) throw new Failure(EXIT.usage, `${path} contains no shrunk scenario`);
  const progress = new Progress(process.stderr);
  const programs =
    before.world === "virtual" ? restorePrograms(wanted.scenario, before.programs) : undefined;
  const loaded = { scenario: wanted.scenario, file: path, folder: dirname(resolve(path)) };
  const report = await runScenario(loaded, {
    seed: wanted.seed,
    progress,
    signal,
    shrinks: false,
    sources: before.programs,
    ...(programs === undefined ? {} : { programs }),
  });
  if (signal.aborted) return interrupted();
  if (flags.json) print(JSON.stringify(report));
  const sameTrace = report.trace === wanted.trace;
  const sameOutcome = report.ok === before.ok && broken(report) === broken(before);
  const outcome = report.ok ? "all right" : (report.stopped ?? "a threshold was broken");
  if (!flags.json) {
    print(`trace ${report.trace}, ${sameTrace ? "the same" : `not ${wanted.trace}`}; ${outcome}`);
  }
  if (sameTrace && sameOutcome) return EXIT.ok;
  process.stderr.write(
    sameTrace
      ? "blindrelay-sim: the same trace, but a different outcome\n"
      : "blindrelay-sim: a different trace: the simulator, the SDK, the relay or the program has changed\n",
  );
  return EXIT.failed;
}

/** The broken oracles, joined. */
function broken({ oracles }: Report): string {
  return oracles.flatMap(({ name, ok }) => (ok ? [] : [name])).join();
}

function readReport(path: string): Report {
  const file = extname(path) === ".json" ? path : join(path, "report.json");
  try {
    const report = parseJson(readFileSync(file, "utf8")) as Report;
    if (typeof report.scenario?.name !== "string" || typeof report.trace !== "string") {
      throw new Error("it is not a report of blindrelay-sim run");
    }
    return report;
  } catch (error) {
    throw new Failure(EXIT.usage, `${file}: ${(error as Error).message}`);
  }
}

async function writeReport(folder: string, report: Report, earlier?: Report): Promise<void> {
  await makeFolder(folder);
  await write(join(folder, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
  const command = `blindrelay-sim replay ${join(folder, "report.json")}`;
  await write(join(folder, "report.html"), renderHtml(report, command, earlier));
}

/** Throws a Failure that is not reported as a bug: a disk may be full. */
async function write(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (error) {
    throw new Failure(EXIT.fault, `${file} could not be written: ${(error as Error).message}`);
  }
}

/** With several seeds, each has a folder of its own. */
function folderOf(folder: string, seeds: RunFlags["seeds"], seed: number): string {
  return seeds === undefined ? folder : join(folder, `seed-${seed}`);
}

async function reserveFolder(folder: string, flag: string): Promise<void> {
  try {
    await makeFolder(folder);
  } catch (error) {
    throw new Failure(EXIT.usage, `${flag} ${folder}: ${(error as Error).message}`);
  }
}

/** Ctrl-C ends `go`; a second one, at least a second later, ends the process at once. */
async function interruptible(go: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const stop = new AbortController();
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  let at = 0;
  const interrupt = (name: NodeJS.Signals): void => {
    if (stop.signal.aborted && performance.now() - at > 1000) process.exit(EXIT.interrupted);
    if (!stop.signal.aborted) at = performance.now();
    stop.abort(new Error(`interrupted by ${name}`));
  };
  for (const name of names) process.on(name, interrupt);
  try {
    return await go(stop.signal);
  } finally {
    for (const name of names) process.off(name, interrupt);
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

function wholeNumber(least: number, most: number) {
  return (text: string): number => {
    const value = Number(text);
    if (!/^[0-9]+$/.test(text) || value < least || value > most) {
      throw new InvalidArgumentError(`a whole number from ${least} to ${most}`);
    }
    return value;
  };
}

function oneOf(...names: string[]) {
  return (text: string): string => {
    if (!names.includes(text)) throw new InvalidArgumentError(`one of ${names.join(", ")}`);
    return text;
  };
}

function httpAddress(text: string): string {
  if (/^https?:$/.test(URL.parse(text)?.protocol ?? "")) return text;
  throw new InvalidArgumentError("an address such as https://relay.example");
}

function seedRange(text: string): [number, number] {
  const [, from, to] = /^([0-9]+)\.\.([0-9]+)$/.exec(text) ?? [];
  const range: [number, number] = [Number(from), Number(to)];
  if (from === undefined || range[1] < range[0] || range[1] > MAX_SEED) {
    throw new InvalidArgumentError("two seeds, such as 1..8");
  }
  if (range[1] - range[0] >= MAX_SEEDS)
    throw new InvalidArgumentError(`at most ${MAX_SEEDS} seeds`);
  return range;
}
