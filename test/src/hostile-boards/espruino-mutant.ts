/** The file for Espruino, built from a copy of the sources without a rule. */
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { REPOSITORY } from "../adversary/build.ts";
import { buildMutant } from "../adversary/mutant-build.ts";
import type { Patch } from "../adversary/mutants.ts";

const BUILD = "agent-sdk/build";
const NODE_MODULES = "node_modules";

/** Its code. */
export const buildEspruinoMutant = async (patches: readonly Patch[]): Promise<string> => {
  const root = mkdtempSync(join(tmpdir(), "blindrelay-mutant-"));
  try {
    buildMutant(root, patches);
    // The build finds the sources beside itself.
    cpSync(join(REPOSITORY, BUILD), join(root, BUILD), { recursive: true });
    symlinkSync(join(REPOSITORY, NODE_MODULES), join(root, NODE_MODULES));
    const url = pathToFileURL(join(root, BUILD, "espruino.ts")).href;
    const build: typeof import("@blindrelay/agent-sdk/testing/build/espruino") = await import(
      /* @vite-ignore */ url
    );
    return build.buildEspruino("any").stored;
  } finally {
    rmSync(root, { recursive: true });
  }
};
