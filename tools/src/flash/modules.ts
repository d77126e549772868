/**
 * Modules that a device program requires (`require("DHT22")`) and its board's firmware may lack:
 * found in a folder of the user, and carried along in the program's file.
 */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import type {
  Board,
  BoardProgram,
  FittedProgram,
  Notice,
  SourceMap,
} from "@blindrelay/agent-sdk/board";
import { type BoardModule, describeRefusal, loadDialect } from "@blindrelay/agent-sdk/dialect";
import { Failure } from "@blindrelay/protocol/command-line";
import { readTextFile } from "../base/text-file.ts";
import { readProgram } from "./program.ts";

/** As Espruino's own tools look for a module. */
const ENDINGS = [".min.js", ".js"];

interface WithModules {
  /** The program's file, with modules. */
  readonly code: string;
  readonly map: SourceMap;
  readonly carried: readonly string[];
  /** Neither in the firmware nor in the folder. */
  readonly missing: readonly string[];
}

const fileOf = (folder: string | undefined, name: string): string | null => {
  if (folder === undefined || basename(name) !== name) return null;
  const paths = ENDINGS.map((ending) => join(folder, `${name}${ending}`));
  return paths.find((path) => existsSync(path)) ?? null;
};

/**
 * Adds what the program requires, and what that requires, unless `isBuiltIn`. Throws a Failure
 * (usage) where there is no such folder or a file cannot be read.
 */
export const carryModules = async (
  program: BoardProgram,
  folder: string | undefined,
  isWide: boolean,
  isBuiltIn: (name: string) => boolean,
): Promise<WithModules> => {
  if (folder !== undefined && !existsSync(folder))
    throw new Failure("usage", `--modules: there is no folder ${folder}`);
  const { marksWithModules, readBoardModule, withModules } = await loadDialect();
  const files = [...program.map.files];
  const carried: BoardModule[] = [];
  const missing: string[] = [];
  const seen = new Set<string>();
  const visit = (name: string): void => {
    if (isBuiltIn(name) || seen.has(name)) return;
    seen.add(name);
    const path = fileOf(folder, name);
    if (path === null) {
      missing.push(name);
      return;
    }
    const read = readBoardModule(readTextFile(path, "the module"), isWide);
    if ("refused" in read) throw new Failure("usage", describeRefusal(path, read.refused));
    for (const inner of read.modules) visit(inner);
    carried.push({ name, code: read.code, marks: read.marks });
    files.push(path);
  };
  for (const name of program.modules) visit(name);
  return {
    code: withModules(program.code, carried),
    map: { files, marks: marksWithModules(program.code, program.map.marks ?? [], carried) },
    carried: carried.map(({ name }) => name),
    missing,
  };
};

/** What to do about missing modules. */
export const MODULES_FIX =
  "specify --modules DIR, the folder that has them as NAME.js (https://www.espruino.com/modules/)";

/**
 * Makes a program for the board that it is flashed to: with the modules that are neither in its
 * firmware nor in its Storage. `folder`: where they are. Rejects with a Failure (usage).
 */
export const fittedTo =
  (program: BoardProgram, folder: string | undefined) =>
  async ({ isWide, modules, files }: Board, notice: Notice): Promise<FittedProgram> => {
    const fit = isWide ? await readProgram(program.path, true) : program;
    const { code, map, carried, missing } = await carryModules(fit, folder, isWide, (name) =>
      modules.includes(name),
    );
    const lacking = missing.filter((name) => !files.includes(name));
    if (lacking.length > 0) {
      throw new Failure(
        "usage",
        `${fit.path} requires modules that this board does not have: ${lacking.join(", ")}: ${MODULES_FIX}`,
      );
    }
    if (carried.length > 0) notice(`carried along with the program: ${carried.join(", ")}`);
    return { ...fit, code, map };
  };
