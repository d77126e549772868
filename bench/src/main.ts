/**
 * `npm run bench`: how fast the relay and the suites are; with --sizes, what the boards' builds
 * cost.
 */
import { parseArgs } from "node:util";

const USAGE = `usage: npm run bench -- [--cycles N] [--json]
       npm run bench -- --sizes [--json]`;
const HELP = `${USAGE}

Without --sizes: processor time to forward a message and to seal a packet, as ratios measured in turns.
  --cycles N  turns that are counted (25)

--sizes: bytes, memory and time of the builds for Espruino and Moddable, each beside its limit
(agent-sdk/build/budgets.json). ESPRUINO_BIN and ESPRUINO_BIN_2630 name an Espruino's Linux build with
memory to spare and one with 2,630 variables; the XS engine is built once, with cc and make. What an
absent engine would measure is said to be skipped.

  --json      one JSON document instead of a table

Example:
  ESPRUINO_BIN=./espruino npm run --silent bench -- --sizes

Exit codes: 0 done; 1 a figure breaks its limit, or a run is void because the machine is too busy; 2 usage.
`;
const EXIT = { ok: 0, failed: 1, usage: 2 };
const DEFAULT_CYCLES = 25;

const flags = readFlags();
if (typeof flags === "string") {
  process.stderr.write(`${flags}\n`);
  process.exitCode = EXIT.usage;
} else if (flags.help) {
  process.stdout.write(HELP);
} else {
  const report = flags.sizes
    ? await (await import("./sizes.ts")).benchSizes()
    : await (await import("./speed.ts")).benchSpeed(flags.cycles);
  process.stdout.write(flags.json ? `${JSON.stringify(report.json)}\n` : report.text);
  process.exitCode = report.ok ? EXIT.ok : EXIT.failed;
}

interface Flags {
  readonly cycles: number;
  readonly sizes: boolean;
  readonly json: boolean;
  readonly help: boolean;
}

/** The flags, or what is wrong with them. */
function readFlags(): Flags | string {
  try {
    const { values } = parseArgs({
      options: {
        cycles: { type: "string" },
        sizes: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    const cycles = Number(values.cycles ?? DEFAULT_CYCLES);
    if (!Number.isInteger(cycles) || cycles < 1) return USAGE;
    if (values.sizes && values.cycles !== undefined) return `--sizes has no --cycles\n${USAGE}`;
    return { ...values, cycles };
  } catch (error) {
    return `${(error as Error).message}\n${USAGE}`;
  }
}
