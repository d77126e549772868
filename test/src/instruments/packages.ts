/**
 * Vitest's global set-up: bundles the packages of many small modules, which take more than half of
 * a relay's start, for the tests' processes (quick-resolve.mjs): 1,100 files become eight. What is
 * published is tested with the packages as they are (test/src/publish).
 */
import { hash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { builtOnce } from "@blindrelay/agent-sdk/testing/build/built-once";
import { buildSync } from "esbuild";
import { PACKAGES } from "./child-environment.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const NAMES = ["kysely", "typebox", "typebox/compile", "typebox/schema", "typebox/value"];
const INDEX = "index.json";

/** Into the folder `work`, with an index: which file to load instead of a name and of its URL. */
const bundle = (work: string): null => {
  const from = join(ROOT, "relay-server");
  mkdirSync(work, { recursive: true });
  const { metafile } = buildSync({
    absWorkingDir: from,
    entryPoints: NAMES.map((name) => ({ in: name, out: name.replace("/", "-") })),
    outdir: work,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    outExtension: { ".js": ".mjs" },
    metafile: true,
  });
  const index = Object.entries(metafile.outputs).flatMap(([path, { entryPoint }]) => {
    if (entryPoint === undefined) return [];
    const file = relative(work, join(from, path));
    const name = basename(file, ".mjs").replace("-", "/");
    return [name, pathToFileURL(join(from, entryPoint)).href].map((key) => [key, file]);
  });
  writeFileSync(join(work, INDEX), JSON.stringify(Object.fromEntries(index)));
  return null;
};

export default async (): Promise<void> => {
  const versions = hash("sha256", readFileSync(join(ROOT, "pnpm-lock.yaml"))).slice(0, 16);
  const built = await builtOnce(`packages-${versions}`, INDEX, bundle);
  if (built.kind === "found") process.env[PACKAGES] = dirname(built.path);
};
