/** `blindrelay-sim validate`: checks a scenario and its programs, or prints its plan. */
import { print } from "../base/output.ts";
import { readLivePrograms } from "../run/run.ts";
import { loadScenario } from "../scenario/load.ts";
import { describePlan, makePlan } from "../scenario/plan.ts";
import { loadPrograms } from "../virtual/programs.ts";

export interface ValidateFlags {
  plan?: boolean;
  seed?: number;
  json?: boolean;
}

/** Rejects with a ScenarioError, or a Failure for a program that is no file. */
export async function validate(what: string, flags: ValidateFlags): Promise<void> {
  const loaded = await loadScenario(what, (scenario) =>
    flags.seed === undefined ? scenario : { ...scenario, seed: flags.seed },
  );
  if (loaded.scenario.world !== "live") loadPrograms(loaded.scenario, loaded.folder);
  else await readLivePrograms(loaded.scenario, loaded.folder, (warning) => console.error(warning));
  const plan = makePlan(loaded.scenario, loaded.scenario.seed ?? 1);
  if (flags.json)
    print(JSON.stringify(flags.plan ? plan : { ok: true, name: loaded.scenario.name }));
  else if (flags.plan) print(describePlan(plan).join("\n"));
  else print(`${loaded.file}: a valid scenario`);
}
