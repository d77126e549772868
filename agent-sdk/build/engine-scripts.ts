/**
 * Scripts for bare engines, which have no modules: for QuickJS the agent as it is, for XS the
 * Moddable build with stand-ins for the SDK's modules (src/testing/xs); and the programs for them.
 */
import { resolve } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { buildXsModules, XS_SPECIFIERS, type XsModules } from "./xs.ts";

const sdk = resolve(import.meta.dirname, "..");
const standIns = resolve(sdk, "src/testing/xs");
const BUILT = "moddable-build";
/** As moddable/manifest.json chooses for the SDK's simulators. */
const SIMULATOR: { readonly [specifier: string]: string } = {
  "blindrelay/values": resolve(sdk, "moddable/values-preference.js"),
  "blindrelay/print": resolve(sdk, "moddable/print-trace.js"),
};

/** Resolves sources to the built modules, and the SDK's modules to stand-ins. */
const onBareEngine = (modules: XsModules): Plugin => ({
  name: "on a bare engine",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(timer|time|preference)$/ }, ({ path }) => ({
      path: resolve(standIns, `${path}.ts`),
    }));
    onResolve({ filter: /^blindrelay\/(values|print)$/ }, ({ path }) => ({
      path: SIMULATOR[path] as string,
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
    onResolve({ filter: /\/moddable\/program-storage\.ts$/ }, () => ({
      path: "storage",
      namespace: BUILT,
    }));
    onResolve({ filter: /\/moddable\/program-(forward|rekey)\.ts$/ }, ({ path }) => ({
      path: path.includes("forward") ? "forward" : "rekey",
      namespace: BUILT,
    }));
    onLoad({ filter: /.*/, namespace: BUILT }, ({ path }) => ({
      contents: modules[path as keyof XsModules],
      resolveDir: sdk,
    }));
  },
});

const script = async (lines: readonly string[], options: BuildOptions): Promise<string> => {
  const { outputFiles } = await build({
    stdin: { contents: lines.join("\n"), resolveDir: sdk, loader: "ts" },
    bundle: true,
    write: false,
    format: "iife",
    target: "esnext",
    platform: "neutral",
    mainFields: ["module", "main"],
    charset: "ascii",
    legalComments: "none",
    ...options,
  });
  return outputFiles?.[0]?.text ?? "";
};

const XS_BRIDGE = `import "./src/testing/xs/bridge.ts";`;

/** Device programs: name to the file that exports it. */
interface Programs {
  readonly [name: string]: string;
}

/**
 * Where `forward` and `rekey` are exported, for devices that speak packet versions "3" and "4" or
 * take a new secret.
 */
const OPTIONAL = {
  "quickjs/main": ["./src/embedded/forward.ts", "./src/embedded/rekey.ts"],
  "xs/host": ["./src/moddable/program-forward.ts", "./src/moddable/program-rekey.ts"],
};

/** Lines that pass these programs to the `serve` of `host`. */
const serving = (host: keyof typeof OPTIONAL, programs: Programs, optional = true): string[] => {
  const names = Object.keys(programs);
  const table = names.map((name, i) => `${JSON.stringify(name)}: p${i}`);
  return [
    `import { serve } from "./src/testing/${host}.ts";`,
    ...names.map((name, i) => `import p${i} from ${JSON.stringify(programs[name])};`),
    ...(optional
      ? [
          `import { forward } from "${OPTIONAL[host][0]}";`,
          `import { rekey } from "${OPTIONAL[host][1]}";`,
        ]
      : []),
    `serve({ ${table.join(", ")} }${optional ? ", { forward, rekey }" : ""});`,
  ];
};

export const quickjsScript = (programs: Programs): Promise<string> =>
  script(serving("quickjs/main", programs), { minifyWhitespace: true });

/**
 * Runs src/testing/bounds-checks.ts; the sentences, or what was thrown, are the global `failures`.
 */
export const boundsScript = (target: string): Promise<string> =>
  script(
    [
      `import { checkBounds } from "./src/testing/bounds-checks.ts";`,
      `let failures = [];`,
      `try { failures = checkBounds(); } catch (error) { failures = [String(error), String(error.stack)]; }`,
      "globalThis.failures = JSON.stringify(failures);",
    ],
    { target },
  );

/** Driven by src/engines/xs-device.ts. `optional`: with `forward` and `rekey`. */
export const deviceScript = (
  modules: XsModules,
  programs: Programs,
  optional = true,
): Promise<string> =>
  script([XS_BRIDGE, ...serving("xs/host", programs, optional)], {
    plugins: [onBareEngine(modules)],
  });

/** For programs that are evaluated later. */
const XS_STORAGE = [
  `import { withStorage } from "./src/moddable/program-storage.ts";`,
  "globalThis.withStorage = withStorage;",
];

/**
 * A device without programs; each is evaluated after it, as
 * `programs.NAME = withStorage(…)`.
 */
export const buildDeviceScript = async (): Promise<string> =>
  script([XS_BRIDGE, ...XS_STORAGE, ...serving("xs/host", {})], {
    plugins: [onBareEngine(await buildXsModules())],
  });

/** The conformance runner of protocol/src/testing. */
export const vectorsScript = (modules: XsModules): Promise<string> =>
  script([XS_BRIDGE, `import "./src/testing/xs/vectors.ts";`], {
    plugins: [onBareEngine(modules)],
  });
