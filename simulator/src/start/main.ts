/**
 * `npm start`: the whole way, once. What it promises stands in the usage text; exit codes: 0 all
 * right, 1 not, 2 a wrong flag, 130 Ctrl-C.
 */
import { access, constants, mkdir, rmdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { renderHtml } from "../report/html.ts";
import { openFileLimit, openFileWarning } from "../report/machine.ts";
import { renderTable } from "../report/table.ts";
import { type Flags, HELP, parseFlags, USAGE } from "./flags.ts";
import { Progress } from "./progress.ts";
import { run } from "./run.ts";

const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 };

/** A terminal's Ctrl-C reaches npm too, which hands it on: the same one comes twice. */
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

async function main(flags: Flags): Promise<number> {
  // First of all, so that nobody learns after a long run that its report has no place.
  const folder = resolve(flags.reportDir);
  let made: string | undefined;
  try {
    made = await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK);
  } catch (error) {
    process.stderr.write(`--report ${flags.reportDir}: ${(error as Error).message}\n`);
    return EXIT.usage;
  }
  const progress = new Progress(process.stderr);
  const warning = openFileWarning(flags.agents, openFileLimit());
  if (warning !== null) progress.say(warning);
  const interrupted = new AbortController();
  let interruptedAt = 0;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (interrupted.signal.aborted) {
        // Who asks twice does not want to wait; what runs is killed on the way out.
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
