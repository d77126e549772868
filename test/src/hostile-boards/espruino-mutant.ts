/** The file for Espruino, built from a copy of the sources without a rule. */
import { withMutantBuild } from "../adversary/mutant-build.ts";
import type { Patch } from "../adversary/mutants.ts";

type Build = typeof import("@blindrelay/agent-sdk/testing/build/espruino");

/** Its code. */
export const buildEspruinoMutant = (patches: readonly Patch[]): Promise<string> =>
  withMutantBuild(
    patches,
    async (load) => (await load<Build>("espruino")).buildEspruino("any").stored,
  );
