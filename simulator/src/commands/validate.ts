/** `blindrelay-sim validate`: checks a scenario and its programs, or prints its plan. */
import { print } from "../output.ts";
import { loadScenario } from "../scenario/load.ts";
import { describePlan, makePlan } from "../scenario/plan.ts";
import { loadPrograms } from "../virtual/programs.ts";

export interface ValidateFlags {
  plan?: boolean;
  seed?: number;
  json?: boolean;
}

/** Rejects with a ScenarioError. */
export async function validate(what: string, flags: ValidateFlags): Promise<void> {
  const loaded = await loadScenario(what, (scenario) =>
    flags.seed === undefined ? scenario : { ...scenario, seed: flags.seed },
  );
  if (loaded.scenario.world !== "live") loadPrograms(loaded.scenario, loaded.folder);
  const plan = makePlan(loaded.scenario, loaded.scenario.seed ?? 1);
  if (flags.json)
    print(JSON.stringify(flags.plan ? plan : { ok: true, name: loaded.scenario.name }));
  else if (flags.plan) print(describePlan(plan).join("\n"));
  else print(`${loaded.file}: a valid scenario`);
}
