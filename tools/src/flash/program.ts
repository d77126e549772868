/**
 * A device program on its way to a board: types erased, written as Espruino's `require` wants it,
 * decimals as the board reads them exactly, every line where it stood. What the board would run
 * wrongly and in silence is refused with its place; names that only a board knows are asked of the
 * board.
 */
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { Failure } from "../failure.ts";
import { loadDialect, type Refusal } from "./sdk.ts";

/** The program as JavaScript, every column where it stood. Throws a Failure (usage). */
export const readSource = (path: string): string => {
  let source: string;
  try {
    source = readFileSync(path, "utf8");
  } catch (error) {
    throw new Failure("usage", `there is no device program ${path}`, error);
  }
  if (!/\.[cm]?ts$/.test(path)) return source;
  try {
    return stripTypeScriptTypes(source);
  } catch (error) {
    throw new Failure("usage", `${path} cannot be read: ${(error as Error).message}`, error);
  }
};

/** `file:line:column: reason: source (what to write instead)`. */
export const describeRefusal = (path: string, { line, column, ...why }: Refusal): string => {
  const text = why.text === "" ? "" : `: ${why.text}`;
  return `${path}:${line}:${column}: ${why.rule}${text}${why.fix === null ? "" : ` (${why.fix})`}`;
};

/** Whether no engine at all could read it. */
export const isSyntax = ({ rule }: Refusal): boolean => rule.startsWith("cannot be read");

export interface DeviceProgram {
  readonly path: string;
  /** As it goes into Storage; ASCII. */
  readonly code: string;
  /** Names and members that the board must have, because the SDK's own code uses none of them. */
  readonly wanted: readonly string[];
}

/**
 * Reads and checks a device program. Throws a Failure (usage) that lists everything boards do not
 * run.
 */
export const readProgram = async (path: string): Promise<DeviceProgram> => {
  const source = readSource(path);
  const { checkProgram, exactDecimals, toModule } = await loadDialect();
  const { refused, asked } = checkProgram(source);
  if (refused.length > 0) {
    const list = refused.map((refusal) => describeRefusal(path, refusal)).join("\n  ");
    throw new Failure("usage", `Espruino does not run this as written:\n  ${list}`);
  }
  return { path, code: exactDecimals(toModule(source)), wanted: asked };
};
