/** `npm run bench`: what forwarding and sealing cost, as ratios that hold on other machines too. Exit code 1 for a void run. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bareWs, type Contender, ourRelay } from "./contenders.ts";
import { type ForwardingResult, measureForwarding, SCENARIOS } from "./forwarding.ts";
import type { Standing } from "./interleave.ts";
import { measureSuites, type SuiteResult } from "./suites.ts";

const USAGE = "usage: npm run bench -- [--cycles N] [--json]";
const EXIT = { ok: 0, void: 1, usage: 2 };

const flags = readFlags();
if (flags === null) {
  process.exitCode = EXIT.usage;
} else {
  process.stderr.write("forwarding ...\n");
  const forwarding = await measureAllForwarding(flags.cycles);
  process.stderr.write("suites ...\n");
  const suites = await measureSuites(flags.cycles);
  const valid = [...forwarding, ...suites].every((result) => result.valid);
  const json = { valid, cycles: flags.cycles, forwarding, suites };
  process.stdout.write(flags.json ? `${JSON.stringify(json)}\n` : render(forwarding, suites));
  process.exitCode = valid ? EXIT.ok : EXIT.void;
}

function readFlags(): { cycles: number; json: boolean } | null {
  try {
    const { values } = parseArgs({
      options: {
        cycles: { type: "string", default: "25" },
        json: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    const cycles = Number(values.cycles);
    if (values.help || !Number.isInteger(cycles) || cycles < 1) throw new Error(USAGE);
    return { cycles, json: values.json };
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return null;
  }
}

async function measureAllForwarding(cycles: number): Promise<ForwardingResult[]> {
  const folder = await mkdtemp(join(tmpdir(), "blindrelay-bench-"));
  const contenders: Contender[] = [];
  try {
    contenders.push(await bareWs("bare ws"), await bareWs("bare ws again"));
    contenders.push(await ourRelay("blindrelay", folder));
    const results: ForwardingResult[] = [];
    for (const scenario of SCENARIOS) {
      results.push(await measureForwarding(scenario, contenders, cycles));
    }
    return results;
  } finally {
    await Promise.all(contenders.map((contender) => contender.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

function render(forwarding: ForwardingResult[], suites: SuiteResult[]): string {
  const lines = ["CPU of the forwarder per forwarded message, against a minimal ws forwarder", ""];
  for (const { scenario, standings, valid } of forwarding) {
    const { name, pairs, window, bytes } = scenario;
    lines.push(`${name}: ${pairs} pairs, ${window} under way, ${bytes} bytes${mark(valid)}`);
    lines.push(...standings.map(line), "");
  }
  lines.push("CPU to seal and open one packet, against node:crypto", "");
  for (const { bytes, standings, valid } of suites) {
    lines.push(`${bytes} bytes of plaintext${mark(valid)}`, ...standings.map(line), "");
  }
  return lines.join("\n");
}

function mark(valid: boolean): string {
  return valid ? "" : "   VOID: the yardstick does not equal itself; the machine is too busy";
}

function line({ name, ratio, us }: Standing): string {
  return `  ${name.padEnd(16)} ${ratio.toFixed(2).padStart(6)}   ${us.toFixed(1).padStart(7)} us`;
}
