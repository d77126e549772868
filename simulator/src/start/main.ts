/**
 * `npm start`: the whole path, once. The usage text describes it. Exit codes: 0 if all went well, 1
 * if not, 2 for a wrong flag, 130 for Ctrl-C.
 */
import { access, constants, rmdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Failure } from "../failure.ts";
import { makeFolder } from "../report/folder.ts";
import { renderHtml } from "../report/html.ts";
import { openFileLimit, openFileWarning } from "../report/machine.ts";
import { Progress } from "../report/progress.ts";
import { renderTable } from "../report/table.ts";
import { ScenarioError } from "../scenario/problems.ts";
import type { RunSettings } from "./build-report.ts";
import { HELP, parseFlags, USAGE } from "./flags.ts";
import { run } from "./run.ts";

const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 };

/** A terminal's Ctrl-C also reaches npm, which forwards it: the same one arrives twice. */
const ECHO_MS = 1_000;

const result = parseFlags(process.argv.slice(2));
if (result.kind === "help") {
  process.stdout.write(HELP);
} else if (result.kind === "wrong") {
  process.stderr.write(`${result.reason}\n${USAGE}\n`);
  process.exitCode = EXIT.usage;
} else {
  process.exit(await main(result.flags));
}

async function main(flags: RunSettings): Promise<number> {
  let programWarning: string | null = null;
  if (flags.program !== null) {
    // Loads a parser, so only if there is something to parse.
    const { checkLiveProgram } = await import("../program-file.ts");
    try {
      programWarning = await checkLiveProgram(flags.program, flags.program);
    } catch (error) {
      if (!(error instanceof Failure || error instanceof ScenarioError)) throw error;
      process.stderr.write(`${error.message}\n`);
      return EXIT.usage;
    }
  }
  // Checked first, so that an unwritable report folder is found before a long run.
  const folder = resolve(flags.reportDir);
  let made: string | undefined;
  try {
    made = await makeFolder(folder);
    await access(folder, constants.W_OK);
  } catch (error) {
    process.stderr.write(`--report ${flags.reportDir}: ${(error as Error).message}\n`);
    return EXIT.usage;
  }
  const progress = new Progress(process.stderr);
  const warning = openFileWarning(flags.agents, openFileLimit());
  for (const text of [warning, programWarning]) if (text !== null) progress.say(text);
  const interrupted = new AbortController();
  let interruptedAt = 0;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (interrupted.signal.aborted) {
        // A second signal means that the user does not want to wait; child processes are killed at
        // exit.
        if (performance.now() - interruptedAt > ECHO_MS) process.exit(EXIT.interrupted);
        return;
      }
      interruptedAt = performance.now();
      interrupted.abort(new Error(`interrupted by ${signal}`));
    });
  }
  const report = await run(flags, progress, interrupted.signal);
  if (interrupted.signal.aborted) {
    if (made !== undefined) await rmdir(folder).catch(() => {});
    progress.say("interrupted; everything is stopped");
    return EXIT.interrupted;
  }
  const page = join(folder, "report.html");
  const own =
    flags.program === null
      ? ""
      : ` --program ${flags.program}${flags.calls.map(({ method, params }) => ` --call '${method}${params === undefined ? "" : `:${JSON.stringify(params)}`}'`).join("")}`;
  const again = `npm start -- --agents ${flags.agents} --calls ${flags.callsPerAgent} --seed ${flags.seed}${own}`;
  const json = `${JSON.stringify(report, null, 2)}\n`;
  await writeFile(join(folder, "report.json"), json);
  await writeFile(page, renderHtml(report, again));
  process.stdout.write(flags.json ? json : renderTable(report, page));
  return report.ok ? EXIT.ok : EXIT.failed;
}
