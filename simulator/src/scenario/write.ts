/** Writes a scenario as a file that `run` takes. */
import { relative, resolve } from "node:path";
import { stringify } from "yaml";
import { replaceFile } from "../base/replace-file.ts";
import type { Scenario } from "./schema.ts";

export const writeScenario = (file: string, scenario: Scenario): Promise<void> =>
  replaceFile(file, stringify(scenario, { aliasDuplicateObjects: false }));

/** Paths relative to the folder `from` as they are written in the folder `to`. */
export const movedTo = (to: string, scenario: Scenario, from: string): Scenario => {
  const pathOf = (path: string): string => {
    const near = relative(resolve(to), resolve(from, path));
    return near.startsWith(".") ? near : `./${near}`;
  };
  const moved = <T extends { program?: string | undefined }>(one: T): T =>
    one.program === undefined ? one : { ...one, program: pathOf(one.program) };
  return {
    ...scenario,
    ...(scenario.stubs === undefined ? {} : { stubs: pathOf(scenario.stubs) }),
    devices: scenario.devices.map(moved),
    ...(scenario.faults === undefined ? {} : { faults: scenario.faults.map(moved) }),
  };
};
