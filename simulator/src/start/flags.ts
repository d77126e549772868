/** The command line of `npm start`, and the scenario that it asks for. */
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { type AskedCall, parseCall } from "../scenario/from-flags.ts";
import { MAX_SEED } from "../scenario/limits.ts";
import type { ClientGroupSpec, Scenario } from "../scenario/schema.ts";

/**
 * One process may hold about 19,900 sockets on many machines (a hard limit of 20,000 open files).
 */
const MAX_AGENTS = 19_000;
const MAX_CALLS = 1_000;
/** Far below what the relay allows a connection: 1,024 bindings, one for each agent. */
const AGENTS_PER_CLIENT = 500;
const CALLS_AT_ONCE = 64;
/** The longest run, many times what a slow machine needs: for itself, an agent, a call. */
const LIMIT_MS = { fixed: 60_000, agent: 10, call: 5 };

export interface StartFlags {
  agents: number;
  callsPerAgent: number;
  reportDir: string;
  seed: number;
  json: boolean;
  /** A device program instead of the bundled ones. */
  program: string | null;
  /** A file of stubs for it. */
  stubs: string | null;
  /** The calls to it. */
  calls: AskedCall[];
}

export const USAGE = `usage: npm start -- [--agents N] [--calls N] [--report DIR] [--seed N] [--json]
       npm start -- --program FILE --call METHOD[:JSON] [--stubs FILE] [--agents N] …`;

export const HELP = `${USAGE}

A relay on loopback, N agents on real sockets in a process of their own, and clients that make sealed calls to every
agent and check every answer. Exit code 0 only if every agent connected and every answer was right.

  --agents N    how many agents (1000; at most ${MAX_AGENTS})
  --calls N     calls to each of them (5; at most ${MAX_CALLS})
  --report DIR  where report.json and report.html go (report)
  --seed N      of all random draws; drawn when absent
  --json        report.json on standard output as well, in place of the table
  --program F   a device program of your own on every agent, in place of ours
  --stubs F     the hardware that it needs: a file that exports (device) => ({ … }), the device's globals
  --call M      the method to call on it, with params as M:JSON; may be repeated

examples: npm start -- --agents 5000 --calls 20 --report /tmp/report
          npm start -- --program ./valve.js --call 'valve.open:{"percent":40}' --call valve.state
For faults, thresholds and virtual time: npm run sim -- --help
`;

/** Null: help is asked for. Throws an Error with the reason for what is wrong. */
export function parseFlags(args: string[]): StartFlags | null {
  const { values } = parseArgs({
    args,
    options: {
      agents: { type: "string", default: "1000" },
      calls: { type: "string", default: "5" },
      report: { type: "string", default: "report" },
      seed: { type: "string", default: String(randomInt(MAX_SEED)) },
      json: { type: "boolean", default: false },
      program: { type: "string" },
      stubs: { type: "string" },
      call: { type: "string", multiple: true, default: [] },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return null;
  if (values.report === "") throw new Error("--report needs a folder");
  const { program = null, stubs = null } = values;
  if (program === null && stubs !== null) throw new Error("--stubs goes with --program FILE");
  if (program === null && values.call.length > 0) {
    throw new Error("--call goes with --program FILE; our own programs have their own calls");
  }
  if (program !== null && values.call.length === 0) {
    throw new Error("--program FILE needs a call to make: --call METHOD or --call METHOD:JSON");
  }
  return {
    agents: wholeNumber("--agents", values.agents, 1, MAX_AGENTS),
    callsPerAgent: wholeNumber("--calls", values.calls, 1, MAX_CALLS),
    reportDir: values.report,
    seed: wholeNumber("--seed", values.seed, 0, MAX_SEED),
    json: values.json,
    program,
    stubs,
    calls: values.call.map(parseCall),
  };
}

/** The demonstration with the asked numbers. `program`: as the scenario names it. */
export function asAsked(
  demonstration: Scenario,
  { agents, callsPerAgent, calls }: StartFlags,
  program: string | null,
): Scenario {
  const { length } = demonstration.devices;
  const devices =
    program === null
      ? demonstration.devices
          .map((group, i) => ({ ...group, count: Math.ceil((agents - i) / length) }))
          .filter(({ count }) => count > 0)
      : [{ group: "agent", count: agents, program }];
  const asked: ClientGroupSpec[] =
    program === null
      ? devices.map(({ group }) => ({ devices: group, calls: callsPerAgent }))
      : calls
          .map(({ method, params }, i) => ({
            devices: "agent",
            call: method,
            calls: Math.ceil((callsPerAgent - i) / calls.length),
            ...(params === undefined ? {} : { params }),
          }))
          .filter((load) => load.calls > 0);
  const limitMs = LIMIT_MS.fixed + agents * (LIMIT_MS.agent + LIMIT_MS.call * callsPerAgent);
  return {
    ...demonstration,
    duration: `${Math.ceil(limitMs / 1000)}s`,
    devices,
    clients: asked.map((load) => ({
      ...load,
      count: Math.ceil(agents / AGENTS_PER_CLIENT),
      at_once: Math.ceil(CALLS_AT_ONCE / asked.length),
      timeout: "10s",
    })),
    thresholds: [`agents.online == ${agents}`],
  };
}

function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new Error(`${flag} must be a whole number from ${least} to ${most}, not "${text}"`);
}
