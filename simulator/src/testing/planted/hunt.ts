/**
 * How a user handles a bug, here one that was planted in this process (preload.ts): runs the
 * scenario that finds it, then replays the run and the smallest scenario from the report. `hunt.ts
 * SCENARIO SEED FOLDER [--no-shrink]`; the last line printed contains both exit codes.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCli } from "../../cli.ts";
import { Progress } from "../../report/progress.ts";
import { runScenario } from "../../run/run.ts";
import { loadScenario } from "../../scenario/load.ts";

/** The command's default is 30 s, which a busy machine may need for one try. */
const SHRINK_MS = 600_000;

const [name = "", seed = "", folder = "", flag = ""] = process.argv.slice(2);
const replay = (...args: string[]): Promise<number> =>
  runCli([process.execPath, "blindrelay-sim", "replay", folder, ...args]);

const report = await runScenario(await loadScenario(name), {
  seed: Number(seed),
  progress: new Progress(process.stderr),
  signal: new AbortController().signal,
  shrinks: flag !== "--no-shrink",
  shrinkMs: SHRINK_MS,
});
writeFileSync(join(folder, "report.json"), JSON.stringify(report));
const codes = [await replay()];
if (report.shrunk !== null) codes.push(await replay("--shrunk"));
process.stdout.write(`${JSON.stringify(codes)}\n`);
