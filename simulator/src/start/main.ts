/**
 * `npm start`: the library's demonstration in the live world, with the asked numbers. The usage
 * text describes it; exit codes are those of `blindrelay-sim run`.
 */
import { EXIT } from "@blindrelay/protocol/command-line";
import { namedProgram, runLoaded, stubsFrom } from "../commands/run.ts";
import { runMain } from "../run-main.ts";
import { loadScenario } from "../scenario/load.ts";
import { asAsked, HELP, parseFlags, type StartFlags, USAGE } from "./flags.ts";

await runMain(() => {
  let flags: StartFlags | null;
  try {
    flags = parseFlags(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}\n`);
    return EXIT.usage;
  }
  if (flags !== null) return start(flags);
  process.stdout.write(HELP);
  return 0;
});

async function start(asked: StartFlags): Promise<number> {
  const { program, reportDir: report, seed, json } = asked;
  const loaded = await loadScenario("demonstration", (scenario, folder) => ({
    ...asAsked(scenario, asked, program === null ? null : namedProgram(folder, program)),
    ...stubsFrom(folder, asked.stubs ?? undefined),
  }));
  return runLoaded(loaded, { report, seed, json, shrink: false });
}
