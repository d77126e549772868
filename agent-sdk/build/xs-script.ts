/**
 * Scripts for the bare XS engine, which has no modules: the Moddable build with stand-ins for
 * what the SDK has (src/testing/xs), and whatever is run on it.
 */
import { resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import { buildXsModules, XS_SPECIFIERS, type XsModules } from "./xs.ts";

const sdk = resolve(import.meta.dirname, "..");
const standIns = resolve(sdk, "src/testing/xs");
const BUILT = "moddable-build";

/** Puts the built modules where sources are imported, and stand-ins where the SDK's modules are. */
const onBareEngine = (modules: XsModules): Plugin => ({
  name: "on a bare engine",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(timer|time|preference)$/ }, ({ path }) => ({
      path: resolve(standIns, `${path}.ts`),
    }));
    for (const name of Object.keys(XS_SPECIFIERS) as (keyof XsModules)[]) {
      const filter = new RegExp(`^${XS_SPECIFIERS[name]}$`);
      onResolve({ filter }, () => ({ path: name, namespace: BUILT }));
    }
    onResolve({ filter: /\/moddable\/index\.ts$/ }, () => ({
      path: "blindrelay",
      namespace: BUILT,
    }));
    onResolve({ filter: /\/moddable\/suite\.ts$/ }, () => ({ path: "noble", namespace: BUILT }));
    onLoad({ filter: /.*/, namespace: BUILT }, ({ path }) => ({
      contents: modules[path as keyof XsModules],
      resolveDir: sdk,
    }));
  },
});

const script = async (contents: string, modules: XsModules): Promise<string> => {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: sdk, loader: "ts" },
    bundle: true,
    write: false,
    format: "iife",
    target: "esnext",
    platform: "neutral",
    mainFields: ["module", "main"],
    charset: "ascii",
    legalComments: "none",
    plugins: [onBareEngine(modules)],
  });
  return outputFiles[0]?.text ?? "";
};

/**
 * A device with these programs (name to the file that exports one); driven by
 * src/engines/xs-device.ts.
 */
export const deviceScript = (
  modules: XsModules,
  programs: { readonly [name: string]: string },
): Promise<string> => {
  const names = Object.keys(programs);
  const imports = names.map((name, i) => `import p${i} from ${JSON.stringify(programs[name])};`);
  const table = names.map((name, i) => `${JSON.stringify(name)}: p${i}`);
  const lines = [
    `import "./src/testing/xs/bridge.ts";`,
    `import { serve } from "./src/testing/xs/host.ts";`,
    ...imports,
    `serve({ ${table.join(", ")} });`,
  ];
  return script(lines.join("\n"), modules);
};

/** A device without programs; each is evaluated after it, as `programs.NAME = …`. */
export const buildDeviceScript = async (): Promise<string> =>
  deviceScript(await buildXsModules(), {});

/** The conformance runner of protocol/src/testing. */
export const vectorsScript = (modules: XsModules): Promise<string> =>
  script(`import "./src/testing/xs/bridge.ts"; import "./src/testing/xs/vectors.ts";`, modules);
