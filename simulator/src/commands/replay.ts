/** `blindrelay-sim replay`: repeats the run of a report, and compares trace and outcome. */
import { dirname, resolve } from "node:path";
import { EXIT, Failure } from "@blindrelay/protocol/command-line";
import { print } from "../base/output.ts";
import { Progress } from "../report/progress.ts";
import { readReport } from "../report/read-report.ts";
import type { Report } from "../report/report.ts";
import { runScenario } from "../run/run.ts";
import { restorePrograms } from "../virtual/programs.ts";
import { interrupted } from "./interruptible.ts";

export interface ReplayFlags {
  shrunk?: boolean;
  json?: boolean;
}

export async function replay(
  path: string,
  flags: ReplayFlags,
  signal: AbortSignal,
): Promise<number> {
  const before = readReport(path);
  const whole = { scenario: before.scenario, seed: before.seed, trace: before.trace };
  const wanted = flags.shrunk ? before.shrunk : whole;
  if (wanted === null) throw new Failure("usage", `${path} contains no shrunk scenario`);
  const progress = new Progress(process.stderr);
  const programs =
    before.world === "virtual" ? restorePrograms(wanted.scenario, before.programs) : undefined;
  const loaded = { scenario: wanted.scenario, file: path, folder: dirname(resolve(path)) };
  const report = await runScenario(loaded, {
    seed: wanted.seed,
    progress,
    signal,
    shrinks: false,
    // Reports of earlier versions do not name it.
    crypto: before.crypto ?? "real",
    sources: before.programs,
    ...(programs === undefined ? {} : { programs }),
  });
  if (signal.aborted) return interrupted();
  if (flags.json) print(JSON.stringify(report));
  const sameTrace = report.trace === wanted.trace;
  const sameOutcome = report.ok === before.ok && broken(report) === broken(before);
  const outcome = report.ok ? "all right" : (report.stopped ?? whyBroken(report));
  if (!flags.json) {
    print(`trace ${report.trace}, ${sameTrace ? "the same" : `not ${wanted.trace}`}; ${outcome}`);
  }
  if (sameTrace && sameOutcome) return 0;
  process.stderr.write(
    sameTrace
      ? "blindrelay-sim: the same trace, but a different outcome\n"
      : "blindrelay-sim: a different trace: the simulator, the SDK, the relay or the program has changed\n",
  );
  return EXIT.expectation;
}

/** Of a run that came to its end. */
function whyBroken(report: Report): string {
  const oracles = broken(report);
  return oracles === "" ? "a threshold was broken" : `broken: ${oracles}`;
}

/** The broken oracles, joined. */
function broken({ oracles }: Report): string {
  return oracles.flatMap(({ name, ok }) => (ok ? [] : [name])).join();
}
