/**
 * `npm start`: the library's demonstration in the live world, with the asked numbers. The usage
 * text describes it; exit codes are those of `blindrelay-sim run`.
 */
import { exitCodeOf } from "../cli.ts";
import { namedProgram, runLoaded } from "../commands/run.ts";
import { EXIT } from "../failure.ts";
import { loadScenario } from "../scenario/load.ts";
import { asAsked, HELP, parseFlags, type StartFlags, USAGE } from "./flags.ts";

let flags: StartFlags | null = null;
try {
  flags = parseFlags(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n${USAGE}\n`);
  process.exit(EXIT.usage);
}
if (flags === null) process.stdout.write(HELP);
else process.exit(await start(flags).catch(exitCodeOf));

async function start(asked: StartFlags): Promise<number> {
  const { program, reportDir: report, seed, json } = asked;
  const loaded = await loadScenario("demonstration", (scenario, folder) =>
    asAsked(scenario, asked, program === null ? null : namedProgram(folder, program)),
  );
  return runLoaded(loaded, { report, seed, json, shrink: false });
}
