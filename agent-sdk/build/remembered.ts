/**
 * A file for boards takes a second or two to build, and the packages, the console and many tests
 * need the same ones: what was built from the same sources by the same code is kept in
 * node_modules/.cache for a day.
 */
import { hash } from "node:crypto";
import {
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { version as acorn } from "acorn";
import { version as esbuild } from "esbuild";
import { type Bundle, type BundleOptions, bundle } from "./bundle.ts";
import { modulesInOrder } from "./modules.ts";

const root = resolve(import.meta.dirname, "../..");
const cache = join(root, "node_modules/.cache/blindrelay/boards");
const KEPT_MS = 86_400_000;

/** What builds it. */
const builder = [
  ...[process.version, acorn, esbuild],
  ...globSync("*.ts", { cwd: import.meta.dirname, exclude: ["*.test.ts"] })
    .sort()
    .map((name) => readFileSync(join(import.meta.dirname, name), "utf8")),
];

const digestOf = (entry: string, options: BundleOptions, source: string): string => {
  const modules = modulesInOrder(entry, options.natives, source);
  const all = [builder, entry, options, modules.map((module) => [module.path, module.source])];
  // Another checkout with the same sources makes the same.
  return hash("sha256", JSON.stringify(all).replaceAll(root, ""));
};

const read = (path: string): Bundle | null => {
  try {
    return JSON.parse(readFileSync(path, "utf8").replaceAll('"ROOT/', `"${root}/`));
  } catch {
    return null;
  }
};

/** Under its name only once it is whole: other processes read it. */
const keep = (path: string, made: Bundle): void => {
  mkdirSync(cache, { recursive: true });
  for (const name of readdirSync(cache)) {
    const old = join(cache, name);
    const { mtimeMs } = statSync(old, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > KEPT_MS) rmSync(old, { force: true });
  }
  const part = `${path}.${process.pid}`;
  writeFileSync(part, JSON.stringify(made).replaceAll(`"${root}/`, '"ROOT/'));
  renameSync(part, path);
};

export const rememberedBundle = (entry: string, options: BundleOptions, source: string): Bundle => {
  const path = join(cache, `${digestOf(entry, options, source)}.json`);
  const known = read(path);
  if (known !== null) return known;
  const made = bundle(entry, options, source);
  keep(path, made);
  return made;
};
