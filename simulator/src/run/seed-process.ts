/** A process that runs one scenario with one seed after another, as its parent asks. */
import { Progress } from "../report/progress.ts";
import type { FromSeedProcess, SeedTask } from "./jobs.ts";
import { runScenario } from "./run.ts";

const silent = new Progress({ write: () => true } as never);
const ended = new AbortController();

// The parent hears of an interruption too, and ends this process with its own.
process.on("SIGINT", () => undefined);
process.on("disconnect", () => process.exit());
process.on("message", async ({ loaded, ...options }: SeedTask) => {
  const tell = (message: FromSeedProcess): void => {
    process.send?.(message);
  };
  try {
    tell({
      report: await runScenario(loaded, { ...options, progress: silent, signal: ended.signal }),
    });
  } catch (error) {
    tell({ failed: String((error as Error)?.stack ?? error) });
  }
});
