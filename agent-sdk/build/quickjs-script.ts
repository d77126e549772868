/** The script for QuickJS: the agent with these programs (name to the file that exports one). */
import { resolve } from "node:path";
import { build } from "esbuild";

const sdk = resolve(import.meta.dirname, "..");

export const quickjsScript = async (programs: {
  readonly [name: string]: string;
}): Promise<string> => {
  const names = Object.keys(programs);
  const table = names.map((name, i) => `${JSON.stringify(name)}: p${i}`);
  const lines = [
    `import { serve } from "./src/testing/quickjs/main.ts";`,
    ...names.map((name, i) => `import p${i} from ${JSON.stringify(programs[name])};`),
    `serve({ ${table.join(", ")} });`,
  ];
  const { outputFiles } = await build({
    stdin: { contents: lines.join("\n"), resolveDir: sdk, loader: "ts" },
    bundle: true,
    write: false,
    format: "iife",
    target: "esnext",
    platform: "neutral",
    mainFields: ["module", "main"],
    minifyWhitespace: true,
    legalComments: "none",
    charset: "ascii",
  });
  return outputFiles[0]?.text ?? "";
};
