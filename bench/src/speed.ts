/** What forwarding and sealing cost, as ratios that hold on other machines too. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bareWs, type Contender, ourRelay } from "./contenders.ts";
import { type ForwardingResult, measureForwarding, SCENARIOS } from "./forwarding.ts";
import type { Standing } from "./interleave.ts";
import type { Report } from "./report.ts";
import { measureSuites, type SuiteResult } from "./suites.ts";

/** Not ok where a run is void. */
export async function benchSpeed(cycles: number): Promise<Report> {
  process.stderr.write("forwarding ...\n");
  const forwarding = await measureAllForwarding(cycles);
  process.stderr.write("suites ...\n");
  const suites = await measureSuites(cycles);
  const valid = [...forwarding, ...suites].every((result) => result.valid);
  const json = { valid, cycles, forwarding, suites };
  return { ok: valid, json, text: render(forwarding, suites) };
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
