/**
 * Reads a scenario from YAML, TypeScript or JavaScript, or by its name in the library, and checks
 * it: first its shape against the schema, then what a schema cannot express. Every mistake is
 * reported with file, line and column.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, extname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { decodeText } from "@blindrelay/protocol/parse-json";
import { parseDocument } from "yaml";
import { type Change, check } from "./check.ts";
import { ScenarioError, unreadable } from "./problems.ts";
import type { Scenario } from "./schema.ts";
import { literalPlaces } from "./script-places.ts";
import { readYaml } from "./yaml-places.ts";

/** A scenario that has passed every check. */
export interface LoadedScenario {
  scenario: Scenario;
  /** The path as given, or "library/NAME.yaml". */
  file: string;
  /** Paths inside the scenario are relative to this folder. */
  folder: string;
}

const LIBRARY = join(import.meta.dirname, "..", "..", "library");
const MAX_FILE_BYTES = 1024 ** 2;
const SCRIPTS = [".ts", ".mts", ".js", ".mjs"];
const YAML = [".yaml", ".yml", ".json"];

export interface LibraryEntry {
  name: string;
  description: string;
}

/** The scenarios that come with the simulator, by name. */
export function listLibrary(): LibraryEntry[] {
  return readdirSync(LIBRARY)
    .filter((file) => file.endsWith(".yaml"))
    .sort()
    .map((file) => {
      const text = readFileSync(join(LIBRARY, file), "utf8");
      const { description } = parseDocument(text).toJS() as { description?: string };
      return { name: basename(file, ".yaml"), description: description ?? "" };
    });
}

/**
 * `what`: a file, or a name from the library. `change`: overrides from the command line, applied
 * before the rules are checked, so that mistakes still have their positions. Rejects with a
 * ScenarioError.
 */
export async function loadScenario(what: string, change?: Change): Promise<LoadedScenario> {
  const isFile = /[/\\.]/.test(what);
  const path = isFile ? resolve(what) : join(LIBRARY, `${what}.yaml`);
  const file = isFile ? what : `library/${what}.yaml`;
  if (!existsSync(path)) throw unreadable(file, missing(what, isFile));
  const { size } = statSync(path);
  if (size > MAX_FILE_BYTES) throw unreadable(file, `${size} bytes; at most ${MAX_FILE_BYTES}`);
  const extension = extname(path);
  const folder = dirname(path);
  if (YAML.includes(extension)) {
    const { value, placeOf } = readYaml(readText(path, file), file);
    return { scenario: check(value, file, folder, placeOf, change), file, folder };
  }
  if (SCRIPTS.includes(extension)) {
    // First: Node would report UTF-16 as an invalid token.
    const placeOf = literalPlaces(readText(path, file));
    const value = await importDefault(path, file);
    return { scenario: check(value, file, folder, placeOf, change), file, folder };
  }
  throw unreadable(file, `a scenario is a .yaml, .ts or .js file, not ${extension || "this"}`);
}

/** Checks a scenario that was created in memory. `folder`: what its paths are relative to. */
export function checkScenario(value: unknown, folder: string, file = "scenario"): LoadedScenario {
  return { scenario: check(value, file, folder, () => ({ line: 1, column: 1 })), file, folder };
}

/** Whether a scenario that was created in memory can be run. */
export function isValid(value: unknown, folder: string): boolean {
  try {
    checkScenario(value, folder);
    return true;
  } catch (error) {
    if (error instanceof ScenarioError) return false;
    throw error;
  }
}

/** A path of a scenario, relative to the current folder. */
export function shown(path: string): string {
  const near = relative(process.cwd(), path);
  return near === "" || near.startsWith("..") ? path : near;
}

function readText(path: string, file: string): string {
  try {
    return decodeText(readFileSync(path));
  } catch (error) {
    throw unreadable(file, (error as Error).message);
  }
}

function missing(what: string, isFile: boolean): string {
  if (isFile) return "file not found";
  const names = listLibrary().map(({ name }) => name);
  return `the library has no scenario "${what}"; it has ${names.join(", ")}. For a file, give its path, such as ./${what}.yaml`;
}

/** What a file is here is decided by the nearest package.json, which `npm init` fills in. */
function asModule(message: string): string {
  if (!/import statement outside a module|Unexpected token 'export'/.test(message)) return message;
  const why = 'the nearest package.json says "type": "commonjs"';
  return `${message}: ${why}. Name the file .mts or .mjs, or write "type": "module" there`;
}

async function importDefault(path: string, file: string): Promise<unknown> {
  try {
    const loaded = (await import(pathToFileURL(path).href)) as { default?: unknown };
    if (loaded.default === undefined) throw new Error("has no default export");
    if (typeof loaded.default === "function") {
      throw new Error("is a device program: run it with --program, or name it in a scenario");
    }
    return loaded.default;
  } catch (error) {
    const { message, stack = "" } = error as Error;
    const [, line, column] =
      /^([0-9]+)(?::([0-9]+))?/.exec(stack.split(`${basename(path)}:`)[1] ?? "") ?? [];
    throw new ScenarioError([
      { file, line: Number(line ?? 1), column: Number(column ?? 1), message: asModule(message) },
    ]);
  }
}
