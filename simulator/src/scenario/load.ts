/**
 * Reads a scenario from YAML, TypeScript or JavaScript, or by its name in the library, and checks
 * it: first its shape against the schema, then what a schema cannot express. Every mistake is
 * reported with file, line and column.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, extname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isCollection, LineCounter, parseDocument } from "yaml";
import type { Place } from "./check.ts";
import { check } from "./check.ts";
import { ScenarioError } from "./problems.ts";
import type { Scenario } from "./schema.ts";
import { literalPlaces } from "./source-places.ts";

/** A scenario that has passed every check. */
export interface LoadedScenario {
  scenario: Scenario;
  /** The file as it was named, or "library/NAME.yaml". */
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
 * `what`: a file, or a name from the library. `change`: what the command line says in place of the
 * file, before the rules are checked, so that mistakes still have their places. Rejects with a
 * ScenarioError.
 */
export async function loadScenario(
  what: string,
  change?: (scenario: Scenario, folder: string) => Scenario,
): Promise<LoadedScenario> {
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
    const value = await importDefault(path, file);
    const placeOf = literalPlaces(readFileSync(path, "utf8"));
    return { scenario: check(value, file, folder, placeOf, change), file, folder };
  }
  throw unreadable(file, `a scenario is a .yaml, .ts or .js file, not ${extension || "this"}`);
}

/** Checks a scenario that was made in memory. `folder`: what its paths are relative to. */
export function checkScenario(value: unknown, folder: string, file = "scenario"): LoadedScenario {
  return { scenario: check(value, file, folder, () => ({ line: 1, column: 1 })), file, folder };
}

/** A path of a scenario as a person would write it from where they are. */
export function shown(path: string): string {
  const near = relative(process.cwd(), path);
  return near === "" || near.startsWith("..") ? path : near;
}

function unreadable(file: string, message: string): ScenarioError {
  return new ScenarioError([{ file, line: 1, column: 1, message }]);
}

function readText(path: string, file: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw unreadable(file, (error as Error).message);
  }
}

function missing(what: string, isFile: boolean): string {
  if (isFile) return "file not found";
  const names = listLibrary().map(({ name }) => name);
  return `the library has no scenario "${what}"; it has ${names.join(", ")}. For a file, give its path, such as ./${what}.yaml`;
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
      { file, line: Number(line ?? 1), column: Number(column ?? 1), message },
    ]);
  }
}

function readYaml(text: string, file: string): { value: unknown; placeOf: Place } {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false });
  const at = (offset: number) => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  if (document.errors.length > 0) {
    throw new ScenarioError(
      document.errors.map(({ message, pos }) => ({ file, ...at(pos[0]), message })),
    );
  }
  let value: unknown;
  try {
    value = document.toJS();
  } catch (error) {
    // An alias without its anchor, or more of them than a scenario needs.
    throw unreadable(file, (error as Error).message);
  }
  return {
    value,
    placeOf(path, part) {
      if (part === "key") {
        const parent = document.getIn(path.slice(0, -1), true);
        if (isCollection(parent)) {
          for (const item of parent.items as { key?: { value?: unknown; range?: number[] } }[]) {
            if (item.key?.value === path.at(-1)) return at(item.key?.range?.[0] ?? 0);
          }
        }
      }
      // What is missing is reported where its owner begins.
      for (let depth = path.length; depth >= 0; depth--) {
        const node = document.getIn(path.slice(0, depth), true) as { range?: number[] } | undefined;
        if (node?.range !== undefined) return at(node.range[0] as number);
      }
      return { line: 1, column: 1 };
    },
  };
}
