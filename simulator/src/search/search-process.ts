/** A process that is one job of a search. */
import { loadPrograms } from "../virtual/programs.ts";
import { hunt } from "./hunt.ts";
import type { FromSearchProcess, SearchTask, ToSearchProcess } from "./jobs.ts";

const ended = new AbortController();
const tell = (message: FromSearchProcess): void => {
  process.send?.(message);
};

// The parent hears of an interruption too, and says when to stop.
process.on("SIGINT", () => undefined);
process.on("disconnect", () => process.exit());
process.on("message", async (message: ToSearchProcess) => {
  if (message === "stop") ended.abort();
  else {
    try {
      await work(message);
      tell({ kind: "over" });
    } catch (error) {
      tell({ kind: "failed", reason: String((error as Error)?.stack ?? error) });
    }
  }
});

async function work({ scenario, forMs, ...task }: SearchTask): Promise<void> {
  const programs = loadPrograms(scenario ?? { name: "", duration: "1s", devices: [] }, task.folder);
  for (const one of task.corpus) loadPrograms(one, task.folder, programs);
  const { base, ...rest } = task;
  await hunt(
    {
      ...rest,
      ...(base === undefined ? {} : { base }),
      programs,
      endsAt: performance.now() + forMs,
      signal: ended.signal,
    },
    {
      begun: (number, one, seed) => tell({ kind: "begun", number, scenario: one, seed }),
      played: (cases, triples) => tell({ kind: "played", cases, triples }),
      found: (finding) => tell({ kind: "found", finding }),
      kept: (one, seed) => tell({ kind: "kept", scenario: one, seed }),
      said: (text) => tell({ kind: "said", text }),
    },
  );
}
