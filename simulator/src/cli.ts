/**
 * The commands of `blindrelay-sim`, their flags and help. Each command's code is loaded when it
 * runs, so that `--help` needs neither a relay nor a world.
 */
import {
  addCompletion,
  asFailure,
  EXIT,
  Failure,
  tidyCommands,
  wholeNumber,
} from "@blindrelay/protocol/command-line";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import pkg from "../package.json" with { type: "json" };
import { print } from "./base/output.ts";
import { interruptible } from "./commands/interruptible.ts";
import type { MergeFlags } from "./commands/merge.ts";
import type { ReplayFlags } from "./commands/replay.ts";
import type { AskedRun } from "./commands/run.ts";
import type { SearchFlags } from "./commands/search.ts";
import type { ValidateFlags } from "./commands/validate.ts";
import { DEFAULT_AGENTS } from "./scenario/from-flags.ts";
import { MAX_DEVICES, MAX_SEED, MAX_SEEDS } from "./scenario/limits.ts";
import { ScenarioError } from "./scenario/problems.ts";
import { DURATION, durationMs } from "./scenario/units.ts";

const MAX_JOBS = 256;
const MAX_SHARDS = 1_000;
const MAX_SEARCH_MS = 7 * 86_400_000;

/** `onExitCode` gets the exit code of a command that judges a run. */
export function makeCli(onExitCode: (exitCode: number) => void): Command {
  const cli = new Command("blindrelay-sim")
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

Exit codes: 0 done, 1 a threshold or an oracle was broken, 2 usage or an invalid scenario, 4 the relay cannot be reached, 5 refused, 70 a bug in blindrelay or output that cannot be written, 130 interrupted.`,
    );

  cli
    .command("run")
    .description("run a scenario, or a device program without one")
    .argument("[scenario]", "a .yaml, .ts or .js file, or a name from the library")
    .option("--program <file>", "a device program; replaces that of a scenario")
    .option(
      "--stubs <file>",
      "the hardware of the devices: exports (device) => ({ … }), their globals",
    )
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
      "--jobs <n>",
      "seeds at a time, each in a process (default: as many as cores); live: processes for the agents (default: 1)",
      wholeNumber(1, MAX_JOBS),
    )
    .option("--shard <i/n>", "of --seeds only this machine's share, such as 2/5", shardOf)
    .addOption(
      new Option("--world <world>", "the default is virtual; live: real sockets").choices([
        "virtual",
        "live",
      ]),
    )
    .option(
      "--live <url>",
      "live, against this external relay; its account token is in BLINDRELAY_ACCOUNT_TOKEN",
      httpAddress,
    )
    .addOption(
      new Option(
        "--crypto <suite>",
        "the default is real; model: seals with what costs nothing (virtual world)",
      ).choices(["real", "model"]),
    )
    .option("--report <dir>", "report.json and report.html go here")
    .option("--compare <report>", "report.html compares with this earlier report (with --report)")
    .option("--junit <file>", "JUnit XML for CI")
    .option("--json", "print the report on standard output, one line per run")
    .option("--log <device>", "print what this device logs, with the run's time (virtual world)")
    .option(
      "--metrics-port <n>",
      "serve a live run's figures as Prometheus text on this port of loopback; 0 picks one",
      wholeNumber(0, 65_535),
    )
    .option("--no-shrink", "do not look for the smallest scenario that breaks")
    .option("--max-time <s>", "end each run after this many real seconds", wholeNumber(1, 86_400))
    .addHelpText(
      "after",
      `
Examples:
  blindrelay-sim run --program ./pump.js --agents 500 --call pump.state
  blindrelay-sim run --program ./valve.js --call 'valve.open:{"percent":40}' --world live
  blindrelay-sim run ./two-rooms.yaml --live https://relay.example --metrics-port 9091
  blindrelay-sim run morning-rush --seed 7 --report report
  blindrelay-sim run ./two-rooms.yaml --seeds 1..8 --junit report/junit.xml`,
    )
    .action(async (what: string | undefined, flags: AskedRun) => {
      const { run } = await import("./commands/run.ts");
      onExitCode(await run(what, flags));
    });

  cli
    .command("replay")
    .description("repeat the run of a report.json; exits with 0 if trace and outcome are the same")
    .argument("<report>", "a report.json, or its folder")
    .option("--shrunk", "repeat the smallest scenario that the run found instead")
    .option("--json", "the new report on standard output")
    .addHelpText("after", "\nExample:\n  blindrelay-sim replay report/report.json")
    .action(async (path: string, flags: ReplayFlags) => {
      const { replay } = await import("./commands/replay.ts");
      onExitCode(await interruptible((signal) => replay(path, flags, signal)));
    });

  cli
    .command("merge")
    .description("the reports of a run's shards as one; exits with 1 if one of them was broken")
    .argument("<dir...>", "the --report folders of the shards")
    .option("--report <dir>", "the reports of all seeds go here")
    .option("--junit <file>", "JUnit XML for CI")
    .option("--json", "print the reports on standard output, one line per seed")
    .addHelpText(
      "after",
      "\nExample:\n  blindrelay-sim merge shard-1 shard-2 --report report --junit report/junit.xml",
    )
    .action(async (folders: string[], flags: MergeFlags) => {
      const { merge } = await import("./commands/merge.ts");
      onExitCode(await merge(folders, flags));
    });

  cli
    .command("search")
    .description("look for what breaks, in scenarios that are drawn; exits with 1 if it finds any")
    .argument("[scenario]", "search around this one; without it, everything is drawn")
    .option("--program <file>", "search around this device program")
    .addOption(
      new Option("--for <duration>", "how long, such as 30s, 20m or 2h")
        .argParser(durationOf)
        .default(20 * 60_000, "20m"),
    )
    .option(
      "--jobs <n>",
      "jobs, each in a process (default: as many as cores)",
      wholeNumber(1, MAX_JOBS),
    )
    .option("--seed <n>", "seed of all draws", wholeNumber(0, MAX_SEED), 1)
    .option("--corpus <dir>", "keeps cases that showed something new; they are played first")
    .option("--known <file>", "findings that are not reported: a YAML list of oracle and detail")
    .option("--report <dir>", "the scenarios that break go here", "report")
    .option("--json", "one JSON line for each finding")
    .addHelpText(
      "after",
      `
Examples:
  blindrelay-sim search --for 20m --corpus corpus
  blindrelay-sim search --program ./pump.js --for 5m --json
  blindrelay-sim search ./two-rooms.yaml --known search-known.yaml`,
    )
    .action(async (what: string | undefined, flags: SearchFlags) => {
      const { search } = await import("./commands/search.ts");
      onExitCode(await interruptible((signal) => search(what, flags, signal)));
    });

  cli
    .command("validate")
    .description("check a scenario and the programs it names")
    .argument("<scenario>", "a file, or a name from the library")
    .option("--plan", "print what will happen when")
    .option("--seed <n>", "for --plan", wholeNumber(0, MAX_SEED))
    .option("--json", "one JSON document")
    .addHelpText("after", "\nExample:\n  blindrelay-sim validate ./two-rooms.yaml --plan")
    .action(async (what: string, flags: ValidateFlags) => {
      const { validate } = await import("./commands/validate.ts");
      await validate(what, flags);
    });

  cli
    .command("schema")
    .description("the JSON Schema of scenarios, for editors")
    .addHelpText("after", "\nExample:\n  blindrelay-sim schema > scenario.schema.json")
    .action(async () => {
      const { jsonSchema } = await import("./scenario/schema.ts");
      print(JSON.stringify(jsonSchema(), null, 2));
    });

  cli
    .command("list")
    .description("the scenarios of the library")
    .option("--json", "one JSON document")
    .addHelpText("after", "\nExample:\n  blindrelay-sim list")
    .action(async (flags: { json?: boolean }) => {
      const { listLibrary } = await import("./scenario/load.ts");
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

  addCompletion(cli, process.stdout);
  tidyCommands(cli, process.stdout);
  return cli;
}

/** Runs one command; resolves with its exit code. */
export async function runCli(args = process.argv): Promise<number> {
  let exitCode: number = 0;
  await makeCli((code) => {
    exitCode = code;
  }).parseAsync(args);
  return exitCode;
}

export function exitCodeOf(thrown: unknown): number {
  const error = asFailure(thrown);
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
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

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

/** Milliseconds. */
function durationOf(text: string): number {
  const ms = new RegExp(DURATION).test(text) ? durationMs(text) : 0;
  if (ms >= 1000 && ms <= MAX_SEARCH_MS) return ms;
  throw new InvalidArgumentError("a duration from 1s to 7d, such as 20m");
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

function shardOf(text: string): [number, number] {
  const [, part, parts] = /^([0-9]{1,4})\/([0-9]{1,4})$/.exec(text) ?? [];
  const shard: [number, number] = [Number(part), Number(parts)];
  if (shard[0] >= 1 && shard[0] <= shard[1] && shard[1] <= MAX_SHARDS) return shard;
  throw new InvalidArgumentError("a part of all, such as 2/5");
}
