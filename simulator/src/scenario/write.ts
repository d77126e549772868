/** Writes a scenario as a file that `run` takes. */
import { writeFile } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { stringify } from "yaml";
import type { Scenario } from "./schema.ts";

export const writeScenario = (file: string, scenario: Scenario): Promise<void> =>
  writeFile(file, stringify(scenario, { aliasDuplicateObjects: false }));

/** Paths relative to the folder `from` as they are written in the folder `to`. */
export const movedTo = (to: string, scenario: Scenario, from: string): Scenario => {
  const moved = <T extends { program?: string | undefined }>(one: T): T => {
    if (one.program === undefined) return one;
    const near = relative(resolve(to), resolve(from, one.program));
    return { ...one, program: near.startsWith(".") ? near : `./${near}` };
  };
  return {
    ...scenario,
    devices: scenario.devices.map(moved),
    ...(scenario.faults === undefined ? {} : { faults: scenario.faults.map(moved) }),
  };
};
