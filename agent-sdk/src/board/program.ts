/**
 * A device program as a board stores it: wrapped for Espruino's `require`, decimals in a form that
 * the board reads exactly, line numbers unchanged. Code that the board would silently run
 * incorrectly is refused with its place; names that only a board knows are checked on the board.
 */
import { Failure } from "@blindrelay/protocol/command-line";
import { type Dialect, describeRefusal } from "./dialect.ts";
import type { SourceMap } from "./source-map.ts";

export interface BoardProgram {
  /** Its file, or what the user calls it. */
  readonly path: string;
  /** As written to Storage; ASCII. */
  readonly code: string;
  readonly map: SourceMap;
  /** Names and members that the board must have, because the SDK's own code uses none of them. */
  readonly wanted: readonly string[];
  /** What it requires by a literal name, apart from the SDK. */
  readonly modules: readonly string[];
}

/** One with the modules that its board lacks. */
export type FittedProgram = Omit<BoardProgram, "modules">;

/**
 * Checks a program in JavaScript. `isWide`: for a board with Unicode strings. Throws a Failure
 * (usage) that lists everything boards do not run.
 */
export const toBoardProgram = (
  { checkProgram, exactDecimals, marksOfProgram, toModule }: Dialect,
  path: string,
  source: string,
  isWide: boolean,
): BoardProgram => {
  const { refused, asked, modules } = checkProgram(source, isWide);
  if (refused.length > 0) {
    const list = refused.map((refusal) => describeRefusal(path, refusal)).join("\n  ");
    throw new Failure("usage", `Espruino does not run this as written:\n  ${list}`);
  }
  const code = exactDecimals(toModule(source, isWide));
  const map = { files: [path], marks: marksOfProgram(source, isWide) };
  return { path, code, map, wanted: asked, modules };
};
