/** Makes a copy of the sources in which one rule is missing. */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { REPOSITORY } from "./build.ts";
import type { Patch } from "./mutants.ts";

/** The sources of the SDK cores, and where each finds its dependencies. */
const PACKAGES = ["protocol", "agent-sdk", "client-sdk"];

/** The text with the patch applied. Throws unless the text to replace occurs exactly once. */
export const patched = (text: string, { file, find, replace }: Patch): string => {
  const count = text.split(find).length - 1;
  if (count !== 1) throw new Error(`${file} has ${count} times, not once: ${find}`);
  return text.replace(find, () => replace);
};

/** `root`: an empty folder, absolute. Afterwards loadBuild(root) loads the copy. */
export const buildMutant = (root: string, patches: readonly Patch[]): void => {
  for (const name of PACKAGES) {
    const from = join(REPOSITORY, name);
    const to = join(root, name);
    cpSync(join(from, "src"), join(to, "src"), {
      recursive: true,
      filter: (path) => !path.endsWith(".test.ts"),
    });
    cpSync(join(from, "package.json"), join(to, "package.json"));
    if (name === "protocol") {
      symlinkSync(join(from, "node_modules"), join(to, "node_modules"));
    } else {
      mkdirSync(join(to, "node_modules/@blindrelay"), { recursive: true });
      symlinkSync(join(root, "protocol"), join(to, "node_modules/@blindrelay/protocol"));
    }
  }
  for (const patch of patches) {
    const path = join(root, patch.file);
    writeFileSync(path, patched(readFileSync(path, "utf8"), patch));
  }
};

/**
 * What `use` makes with the modules of `agent-sdk/build` in such a copy, which build it: `load`
 * takes the name of one. The copy is gone afterwards.
 */
export const withMutantBuild = async <Made>(
  patches: readonly Patch[],
  use: (load: <Module>(name: string) => Promise<Module>, root: string) => Promise<Made>,
): Promise<Made> => {
  const root = mkdtempSync(join(tmpdir(), "blindrelay-mutant-"));
  try {
    buildMutant(root, patches);
    // The build finds the sources beside itself.
    for (const folder of ["build", "moddable"]) {
      const from = join(REPOSITORY, "agent-sdk", folder);
      cpSync(from, join(root, "agent-sdk", folder), { recursive: true });
    }
    symlinkSync(join(REPOSITORY, "node_modules"), join(root, "node_modules"));
    const load = (name: string) =>
      import(/* @vite-ignore */ pathToFileURL(join(root, "agent-sdk/build", `${name}.ts`)).href);
    return await use(load, root);
  } finally {
    rmSync(root, { recursive: true });
  }
};
