/**
 * The Moddable build: seven modules of plain JavaScript that `mcconfig` takes as they are.
 *
 *   blindrelay         the public API: src/moddable/index.ts
 *   blindrelay/core    everything that may be preloaded into flash: src/moddable/core.ts
 *   blindrelay/noble   the crypto that must not be preloaded: src/moddable/suite.ts with @noble
 *   blindrelay/storage `agent.storage`, for programs that use it: src/moddable/program-storage.ts
 *   blindrelay/log     a log that can be read over the relay: src/moddable/program-log.ts
 *   blindrelay/forward packet versions "3" and "4", with X25519: src/moddable/program-forward.ts
 *   blindrelay/rekey   a secret that is replaced over the relay: src/moddable/program-rekey.ts
 *
 * XS runs the whole language, so modules are bundled and nothing is rewritten. Names are kept: XS
 * compiles to bytecode, and function names in a stack trace are worth the 2 KB of flash.
 *
 * As a program: writes them to dist/moddable-modules.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";

/** The entry of each module, as a file of src/moddable. */
const ENTRIES = {
  blindrelay: "index",
  core: "core",
  noble: "suite",
  storage: "program-storage",
  log: "program-log",
  forward: "program-forward",
  rekey: "program-rekey",
} as const;

type Name = keyof typeof ENTRIES;
type Each<T> = { readonly [name in Name]: T };
export type XsModules = Each<string>;

const NAMES = Object.keys(ENTRIES) as Name[];
const each = <T>(of: (name: Name) => T): Each<T> =>
  Object.fromEntries(NAMES.map((name) => [name, of(name)])) as Each<T>;

/** Specifiers under which the manifest lists the modules. */
export const XS_SPECIFIERS = each((name) => (name === "blindrelay" ? name : `blindrelay/${name}`));

const sdk = resolve(import.meta.dirname, "..");

/** Files of the module "rekey". */
const REKEY = /\/(rekey|give-rekey|secret-trial|record|push-serial)\.ts$/;

/** An import from one of these modules by another stays an import, by its name in the manifest. */
const apart: Plugin = {
  name: "apart",
  setup({ onResolve }) {
    const onImport = (file: RegExp, path: string): void =>
      onResolve({ filter: file }, ({ importer }) =>
        importer.includes("/src/moddable/") ? { path, external: true } : null,
      );
    onImport(/^\.\/core\.ts$/, XS_SPECIFIERS.core);
    onImport(/^\.\/suite\.ts$/, XS_SPECIFIERS.noble);
    // The sessions of "1" and "2", which those of "3" and "4" extend.
    onResolve({ filter: /^\.\/agent\.ts$/ }, ({ importer }) =>
      importer.endsWith("/session/forward-agent.ts")
        ? { path: XS_SPECIFIERS.core, external: true }
        : null,
    );
    // Nor a second copy of what every project contains.
    onResolve({ filter: /^@blindrelay\/protocol|\/bootcount\.ts$/ }, ({ path, importer }) => {
      if (!REKEY.test(importer)) return null;
      return {
        path: XS_SPECIFIERS[path.endsWith("noble-chacha") ? "noble" : "core"],
        external: true,
      };
    });
  },
};

/** A module and all that it imports, as one text that XS loads. */
export const bundleForXs = async (
  entry: string,
  more: Pick<BuildOptions, "external" | "plugins">,
): Promise<string> => {
  const { outputFiles } = await build({
    ...more,
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    target: "esnext",
    platform: "neutral",
    mainFields: ["module", "main"],
    treeShaking: true,
    minifyWhitespace: true,
    legalComments: "none",
    charset: "ascii",
  });
  return outputFiles[0]?.text ?? "";
};

const bundle = (name: Name): Promise<string> =>
  bundleForXs(resolve(sdk, `src/moddable/${ENTRIES[name]}.ts`), {
    external: ["timer", "time", "blindrelay/values", "blindrelay/print"],
    plugins: [apart],
  });

/**
 * @noble copies bytes with `Uint8Array.from`, for which XS makes a list of them: 16 bytes for each
 * one. A sealed message of 3 KB would take 45 KB of a small heap.
 */
const copyingLean = (noble: string): string => {
  const lean = noble.replace(/Uint8Array\.from\((abytes\d*\(bytes\))\)/g, "$1.slice()");
  if (lean === noble) throw new Error("@noble copies bytes in another way now: see copyingLean");
  return lean;
};

/** Builds the modules in memory. */
export const buildXsModules = async (): Promise<XsModules> => {
  const texts = await Promise.all(NAMES.map(bundle));
  return each((name) => {
    const text = texts[NAMES.indexOf(name)] as string;
    return name === "noble" || name === "forward" ? copyingLean(text) : text;
  });
};

/** Bytes of each module. They are ASCII. */
export const moduleBytes = (modules: XsModules): Each<number> =>
  each((name) => modules[name].length);

/** The path where moddable/manifest.json looks for them. */
const XS_FOLDER = resolve(sdk, "dist/moddable-modules");

if (import.meta.main) {
  const modules = await buildXsModules();
  mkdirSync(XS_FOLDER, { recursive: true });
  for (const name of NAMES) {
    writeFileSync(resolve(XS_FOLDER, `${name}.js`), modules[name]);
    console.log(`${XS_SPECIFIERS[name]}: ${modules[name].length} bytes`);
  }
}
