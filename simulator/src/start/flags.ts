/** The command line of `npm start`. */
import { randomInt } from "node:crypto";
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { parseCall } from "../scenario/from-flags.ts";
import { MAX_SEED } from "../scenario/limits.ts";
import type { RunSettings } from "./build-report.ts";

/**
 * One process may hold about 19,900 sockets on many machines (a hard limit of 20,000 open files).
 */
const MAX_AGENTS = 19_000;
const MAX_CALLS = 1_000;

export const USAGE = `usage: npm start -- [--agents N] [--calls N] [--report DIR] [--seed N] [--json]
       npm start -- --program FILE --call METHOD[:JSON] [--agents N] …`;

export const HELP = `${USAGE}

A relay on loopback, N agents on real sockets in a process of their own, and clients that make sealed calls to every
agent and check every answer. Exit code 0 only if every agent connected and every answer was right.

  --agents N    how many agents (1000; at most ${MAX_AGENTS})
  --calls N     calls to each of them (5; at most ${MAX_CALLS})
  --report DIR  where report.json and report.html go (report)
  --seed N      what devices measure and clients ask; drawn when absent
  --json        report.json on standard output as well, in place of the table
  --program F   a device program of your own on every agent, in place of ours
  --call M      the method to call on it, with params as M:JSON; may be repeated

examples: npm start -- --agents 5000 --calls 20 --report /tmp/report
          npm start -- --program ./valve.js --call 'valve.open:{"percent":40}' --call valve.state
For faults, thresholds and virtual time: npm run sim -- --help
`;

export type FlagsResult =
  | { kind: "flags"; flags: RunSettings }
  | { kind: "help" }
  | { kind: "wrong"; reason: string };

/** @param args without program and script: `process.argv.slice(2)` */
export function parseFlags(args: string[]): FlagsResult {
  try {
    const { values } = parseArgs({
      args,
      options: {
        agents: { type: "string", default: "1000" },
        calls: { type: "string", default: "5" },
        report: { type: "string", default: "report" },
        seed: { type: "string", default: String(randomInt(MAX_SEED)) },
        json: { type: "boolean", default: false },
        program: { type: "string" },
        call: { type: "string", multiple: true, default: [] },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (values.help) return { kind: "help" };
    if (values.report === "") throw new Error("--report needs a folder");
    const { program = null } = values;
    if (program === null && values.call.length > 0) {
      throw new Error("--call goes with --program FILE; our own programs have their own calls");
    }
    if (program !== null && values.call.length === 0) {
      throw new Error("--program FILE needs a call to make: --call METHOD or --call METHOD:JSON");
    }
    if (program !== null && !existsSync(program)) {
      throw new Error(`--program ${program}: file not found`);
    }
    const flags: RunSettings = {
      agents: wholeNumber("--agents", values.agents, 1, MAX_AGENTS),
      callsPerAgent: wholeNumber("--calls", values.calls, 1, MAX_CALLS),
      reportDir: values.report,
      seed: wholeNumber("--seed", values.seed, 0, MAX_SEED),
      json: values.json,
      program,
      calls: values.call.map(parseCall),
    };
    return { kind: "flags", flags };
  } catch (error) {
    return { kind: "wrong", reason: (error as Error).message };
  }
}

function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new Error(`${flag} must be a whole number from ${least} to ${most}, not "${text}"`);
}
