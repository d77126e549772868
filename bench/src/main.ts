/**
 * `npm run bench`: the speed of the relay and the suites compared with others; with --sizes, what
 * the boards' builds cost.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { SECTION_IDS } from "./sections.ts";

const USAGE = `usage: npm run bench -- [--only NAMES] [--quick] [--cycles N] [--json FILE] [--html FILE]
       npm run bench -- --sizes [--json FILE]`;
const HELP = `${USAGE}

Measures processor time and memory of the relay, a minimal forwarder on ws, and mosquitto, nats-server and
aedes where they are installed (a serial port: bridge and attach, and ser2net), in turns on this machine. A result that cannot be trusted is called void, with the
reason: give it a quiet machine. Linux only; see bench/README.md.

  --only NAMES  some of ${SECTION_IDS.slice(0, 6).join(", ")},
                ${SECTION_IDS.slice(6).join(", ")}; separated by commas
  --cycles N    counted turns (default: 40)
  --quick       seconds instead of minutes, to check that everything works: always void, with exit code 0
  --json FILE   all figures as one JSON document; - is standard output, in place of the table
  --html FILE   one page with bar charts

--sizes: bytes, memory and time of the builds for Espruino and Moddable, each with its limit
(agent-sdk/build/budgets.json). ESPRUINO_BIN, ESPRUINO_BIN_2630 and ESPRUINO_BIN_32 name Espruino's Linux builds with
ample memory, with 2,630 variables, and with so many of 32 bits (CONTRIBUTING.md); the XS engine is built once, with cc and make.
What an absent engine would measure is reported as skipped.

Examples:
  npm run bench -- --json bench.json --html bench.html
  npm run bench -- --only c1,w4 --cycles 60
  ESPRUINO_BIN=./espruino npm run --silent bench -- --sizes

Exit codes: 0 done; 1 a figure breaks its limit, a run is void, or a server failed; 2 usage; 130 interrupted.
`;
const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 };
const DEFAULT_CYCLES = 40;
const QUICK_CYCLES = 1;

const flags = readFlags();
if (typeof flags === "string") {
  process.stderr.write(`${flags}\n`);
  process.exitCode = EXIT.usage;
} else if (flags.help) {
  process.stdout.write(HELP);
} else {
  process.exitCode = await run(flags);
}

type Flags = Exclude<ReturnType<typeof readFlags>, string>;

async function run(flags: Flags): Promise<number> {
  const interrupted = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.once(name, () => interrupted.abort(new Error(`ended by ${name}`)));
  }
  try {
    const { signal } = interrupted;
    const report = flags.sizes
      ? await (await import("./sizes.ts")).benchSizes()
      : await (await import("./speed-run.ts")).benchSpeed(flags, process.argv.slice(2), signal);
    if (flags.html !== undefined) writeFileSync(flags.html, report.html ?? "");
    const json = `${JSON.stringify(report.json, null, 1)}\n`;
    if (flags.json !== undefined && flags.json !== "-") writeFileSync(flags.json, json);
    process.stdout.write(flags.json === "-" ? json : report.text);
    return report.ok ? EXIT.ok : EXIT.failed;
  } catch (error) {
    const reason = interrupted.signal.aborted ? interrupted.signal.reason : error;
    process.stderr.write(`bench: ${(reason as Error).message}\n`);
    return interrupted.signal.aborted ? EXIT.interrupted : EXIT.failed;
  }
}

/** The flags, or an error message. */
function readFlags() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: "string" },
        quick: { type: "boolean", default: false },
        cycles: { type: "string" },
        sizes: { type: "boolean", default: false },
        json: { type: "string" },
        html: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    const cycles = Number(values.cycles ?? (values.quick ? QUICK_CYCLES : DEFAULT_CYCLES));
    if (!Number.isInteger(cycles) || cycles < 1) return `--cycles takes a number from 1\n${USAGE}`;
    const only = values.only?.split(",") ?? [];
    const unknown = only.find((id) => !SECTION_IDS.includes(id));
    if (unknown !== undefined) {
      return `--only knows ${SECTION_IDS.join(", ")}, not "${unknown}"\n${USAGE}`;
    }
    const speedOnly = ["only", "cycles", "html"] as const;
    const wrong = speedOnly.find((name) => values.sizes && values[name] !== undefined);
    if (wrong !== undefined || (values.sizes && values.quick)) {
      return `--sizes has no --${wrong ?? "quick"}\n${USAGE}`;
    }
    return { ...values, only, cycles };
  } catch (error) {
    return `${(error as Error).message}\n${USAGE}`;
  }
}
