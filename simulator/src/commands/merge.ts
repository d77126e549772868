/** `blindrelay-sim merge`: the reports of a run's shards, as if it had been one run. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { readReport } from "../report/read-report.ts";
import type { Report } from "../report/report.ts";
import { finish, printReport, type RunFlags, reserve, writeReport } from "./run.ts";

export type MergeFlags = Pick<RunFlags, "report" | "junit" | "json">;

export async function merge(folders: readonly string[], flags: MergeFlags): Promise<number> {
  const reports = folders.flatMap(reportsIn).sort((a, b) => a.seed - b.seed);
  const [first] = reports as [Report];
  for (const [i, report] of reports.entries()) {
    if (report.seed === reports[i - 1]?.seed) {
      throw new Failure("usage", `seed ${report.seed} is in several of these folders`);
    }
    if (identity(report) !== identity(first)) {
      const names = `${first.scenario.name} and ${report.scenario.name}`;
      throw new Failure("usage", `these are no shards of one run: ${names} differ`);
    }
  }
  await reserve(flags);
  for (const report of reports) {
    const folder = flags.report === undefined ? null : join(flags.report, `seed-${report.seed}`);
    if (folder !== null) await writeReport(folder, report);
    printReport(report, folder, flags.json);
  }
  return finish(reports, flags.junit, missingFrom(reports));
}

const SHOWN = 5;

/** The seeds that a run should have had too: of a shard that was left out, or that did not end. */
function missingFrom(reports: readonly Report[]): string | null {
  const ran = new Set(reports.map(({ seed }) => seed));
  const missing = new Set<number>();
  const ranges = new Map(reports.flatMap(({ seeds }) => (seeds ? [[String(seeds), seeds]] : [])));
  for (const [from, to] of ranges.values()) {
    for (let seed = from; seed <= to; seed++) if (!ran.has(seed)) missing.add(seed);
  }
  if (missing.size === 0) return null;
  const shown = [...missing].slice(0, SHOWN).join(", ");
  const more = missing.size > SHOWN ? ` and ${missing.size - SHOWN} more` : "";
  return `no report of seed ${shown}${more}: a shard is missing, or did not come to its end`;
}

/** What is the same in all shards of one run. */
const identity = ({ scenario, programs }: Report): string =>
  JSON.stringify([{ ...scenario, seed: 0 }, programs]);

/** Of a run with one seed, or of one with several. */
function reportsIn(folder: string): Report[] {
  const inside = existsSync(folder) ? readdirSync(folder) : [];
  const seeds = inside.filter((name) => /^seed-[0-9]+$/.test(name));
  if (seeds.length > 0) return seeds.map((name) => readReport(join(folder, name)));
  return [readReport(folder)];
}
