/** Runs a scenario with several seeds in several processes, so that each core plays one. */
import type { ChildProcess } from "node:child_process";
import { extname, join } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { aborted } from "../base/aborted.ts";
import { forkJob, stopChild, whenEnded } from "../base/processes.ts";
import type { Report } from "../report/report.ts";
import type { LoadedScenario } from "../scenario/load.ts";
import type { RunScenarioOptions } from "./run.ts";

export type SeedTask = { loaded: LoadedScenario } & Omit<RunScenarioOptions, "progress" | "signal">;
export type FromSeedProcess = { report: Report } | { failed: string };

const STOP_GRACE_MS = 500;

/**
 * `report` gets each report, in the order of the seeds. Resolves early when `signal` aborts;
 * rejects if a process fails.
 */
export async function runJobs(
  seeds: readonly number[],
  jobs: number,
  task: Omit<SeedTask, "seed">,
  signal: AbortSignal,
  report: (report: Report) => Promise<void>,
): Promise<void> {
  const program = join(import.meta.dirname, `seed-process${extname(import.meta.filename)}`);
  const children = Array.from({ length: Math.min(jobs, seeds.length) }, () => forkJob(program));
  const stop = (): Promise<unknown> =>
    Promise.all(children.map((child) => stopChild(child, () => child.kill(), STOP_GRACE_MS)));
  const done = new Map<number, Report>();
  let next = 0;
  let told = 0;
  let telling = Promise.resolve();
  const work = async (child: ChildProcess): Promise<void> => {
    while (next < seeds.length && !signal.aborted) {
      const at = next++;
      const answer = await ask(child, { ...task, seed: seeds[at] as number });
      if ("failed" in answer) throw new Failure("fault", answer.failed);
      done.set(at, answer.report);
      for (let one = done.get(told); one !== undefined; one = done.get(told)) {
        const ready = one;
        done.delete(told++);
        telling = telling.then(() => report(ready));
      }
      await telling;
    }
  };
  try {
    await Promise.race([Promise.all(children.map(work)), aborted(signal)]);
  } finally {
    await stop();
    // A report that is being written is written to its end.
    await telling.catch(() => undefined);
  }
}

function ask(child: ChildProcess, task: SeedTask): Promise<FromSeedProcess> {
  return new Promise((resolve) => {
    child.once("message", (message: FromSeedProcess) => resolve(message));
    whenEnded(child).then((how) => resolve({ failed: `a seed's process ended (${how})` }));
    child.send(task);
  });
}
