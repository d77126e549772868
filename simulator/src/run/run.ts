/** A scenario in its world, from start to report; after a violation, the search for the smallest scenario that shows it again. */
import { EXIT, Failure } from "../failure.ts";
import type { Report } from "../report/report.ts";
import type { LoadedScenario } from "../scenario/load.ts";
import { durationMs } from "../scenario/units.ts";
import { shrink } from "../shrink/shrink.ts";
import type { Progress } from "../start/progress.ts";
import type { LoadedProgram } from "../world/program.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual } from "./virtual.ts";

export interface RunScenarioOptions {
  seed: number;
  progress: Progress;
  signal: AbortSignal;
  shrinks: boolean;
  hardStopMs?: number;
  /** A relay to use in place of one's own. */
  live?: string;
  /** Loaded already, for a replay. */
  programs?: ReadonlyMap<string, LoadedProgram>;
  /** Their texts, for a live replay. */
  sources?: Readonly<Record<string, string>>;
}

const SHRINK_MS = 30_000;

export async function runScenario(
  { scenario, folder }: LoadedScenario,
  options: RunScenarioOptions,
): Promise<Report> {
  const { seed, progress, signal, hardStopMs } = options;
  if (scenario.world === "live") throw new Failure(EXIT.usage, "the live world is not there yet");
  const programs = options.programs ?? loadPrograms(scenario, folder);
  const seconds = durationMs(scenario.duration) / 1000;
  let done = 0;
  progress.start(`simulated seconds of "${scenario.name}", seed ${seed}`, seconds, () => done);
  const { report, violation } = await runVirtual(scenario, {
    seed,
    programs,
    signal,
    progress: (share) => {
      done = Math.round(share * seconds);
    },
    ...(hardStopMs === undefined ? {} : { hardStopMs }),
  });
  done = Math.round(Math.min(seconds, report.series.at(-1)?.at_s ?? 0));
  progress.end();
  if (violation === null || signal.aborted || !options.shrinks) return report;
  let tries = 0;
  progress.start("tries to find a smaller scenario", 100, () => tries);
  report.shrunk = await shrink(report.scenario, violation, {
    seed,
    programs,
    signal,
    budgetMs: SHRINK_MS,
    tried: (count) => {
      tries = count;
    },
  });
  progress.end();
  return report;
}
