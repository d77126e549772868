/** The modules of the chip's devices, from the Moddable build and this folder. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { VECTOR_FILE_NAMES } from "@blindrelay/protocol/testing";
import type { Plugin } from "esbuild";
import { buildXsModules, bundleForXs, XS_SPECIFIERS, type XsModules } from "../build/xs.ts";
import type { ChipModule } from "./build.ts";

/** Modules of js, besides the entry. */
const OWN = ["edge", "vector-checks"];

/** Files of embedded/push.ts: they take what they can from the core. */
const OF_PUSHES = /\/src\/(core|embedded)\/(push|push-serial|record)\.ts$/;

/** What the built modules hold is imported from them. */
const fromBuild: Plugin = {
  name: "from the Moddable build",
  setup({ onResolve }) {
    const external = (filter: RegExp, path: string): void =>
      onResolve({ filter }, () => ({ path, external: true }));
    external(/^vector-files$/, "vector-files");
    external(/^device-program$/, "device-program");
    external(/^pushed-programs$/, "pushed-programs");
    for (const name of OWN) external(new RegExp(`^\\./${name}\\.ts$`), name);
    external(/\/moddable\/core\.ts$|^\.\/(core|start)\.ts$/, XS_SPECIFIERS.core);
    external(/\/moddable\/suite\.ts$/, XS_SPECIFIERS.noble);
    onResolve({ filter: /^@blindrelay\/protocol|\/dispatch\.ts$/ }, ({ importer }) =>
      OF_PUSHES.test(importer) ? { path: XS_SPECIFIERS.core, external: true } : null,
    );
  },
};

/**
 * Built-ins cannot be written, as on Moddable's devices: for each object that can be, a device
 * holds four bytes, in case it is. With `true`, XS freezes what an object leads to as well.
 */
const FROZEN = `for (const name of Object.getOwnPropertyNames(globalThis)) {
  const value = globalThis[name];
  if (value !== globalThis && Object(value) === value) Object.freeze(value, true);
}`;

/** Every vector, as JavaScript: preloaded, so that it takes nothing of the heap. */
const vectors = (): ChipModule => {
  const files = Object.entries(VECTOR_FILE_NAMES).map(([field, name]) => {
    const file = import.meta.resolve(`@blindrelay/protocol/vectors/${name}`);
    return `${field}: ${readFileSync(fileURLToPath(file), "utf8")}`;
  });
  const source = `export default Object.freeze({${files.join(",")}}, true);`;
  return { name: "vector-files", source, preload: true };
};

const pushedPrograms = (programs: readonly Uint8Array[]): ChipModule => {
  const all = programs.map((bytes) => ({
    data: Buffer.from(bytes).toString("base64url"),
    size: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
  }));
  return {
    name: "pushed-programs",
    source: `export default ${JSON.stringify(all)};`,
    preload: true,
  };
};

const bundle = (entry: string): Promise<string> =>
  bundleForXs(resolve(import.meta.dirname, "js", entry), { plugins: [fromBuild] });

interface ChipModulesOptions {
  /** The Moddable build with a fault planted. */
  readonly change?: (modules: XsModules) => XsModules;
  /** A device program's file, for an entry that imports "device-program". */
  readonly program?: string;
  /** For an entry that imports "pushed-programs". */
  readonly pushed?: readonly Uint8Array[];
}

/** Of a device that runs js/ENTRY.ts. */
export const chipModules = async (
  entry: string,
  { change = (modules) => modules, program, pushed }: ChipModulesOptions = {},
): Promise<ChipModule[]> => {
  const modules = change(await buildXsModules());
  return [
    { name: XS_SPECIFIERS.core, source: modules.core, preload: true },
    { name: XS_SPECIFIERS.noble, source: modules.noble },
    { name: "edge", source: await bundle("edge.ts"), preload: true },
    // Not preloaded: XS's JSON.stringify refuses an object in read-only memory.
    ...(entry === "vectors"
      ? [vectors(), { name: "vector-checks", source: await bundle("vector-checks.ts") }]
      : []),
    ...(program === undefined ? [] : [{ name: "device-program", source: await bundle(program) }]),
    ...(pushed === undefined ? [] : [pushedPrograms(pushed)]),
    { name: "frozen", source: FROZEN, preload: true },
    { name: entry, source: await bundle(`${entry}.ts`) },
  ];
};
