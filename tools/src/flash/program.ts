/**
 * Prepares a device program for a board: types erased, wrapped for Espruino's `require`, decimals
 * in a form that the board reads exactly, line numbers unchanged. Code that the board would
 * silently run incorrectly is refused with its place; names that only a board knows are checked on
 * the board.
 */
import { existsSync } from "node:fs";
import { describeRefusal, eraseTypes, loadDialect } from "@blindrelay/agent-sdk/dialect";
import { Failure } from "@blindrelay/protocol/command-line";
import { readTextFile } from "../base/text-file.ts";

/** The program as JavaScript, with unchanged columns. Throws a Failure (usage). */
export const readSource = (path: string): string => {
  if (!existsSync(path)) throw new Failure("usage", `there is no device program ${path}`);
  const source = readTextFile(path, "the device program");
  if (!/\.[cm]?ts$/.test(path)) return source;
  const erased = eraseTypes(source);
  if ("code" in erased) return erased.code;
  throw new Failure("usage", describeRefusal(path, erased.refused));
};

/** A device program as a board stores it. */
export interface BoardProgram {
  readonly path: string;
  /** As written to Storage; ASCII. */
  readonly code: string;
  /** Names and members that the board must have, because the SDK's own code uses none of them. */
  readonly wanted: readonly string[];
  /** What it requires by a literal name, apart from the SDK. */
  readonly modules: readonly string[];
}

/**
 * Reads and checks a device program. `isWide`: for a board with Unicode strings. Throws a Failure
 * (usage) that lists everything boards do not run.
 */
export const readProgram = async (path: string, isWide = false): Promise<BoardProgram> => {
  const source = readSource(path);
  const { checkProgram, exactDecimals, toModule } = await loadDialect();
  const { refused, asked, modules } = checkProgram(source, isWide);
  if (refused.length > 0) {
    const list = refused.map((refusal) => describeRefusal(path, refusal)).join("\n  ");
    throw new Failure("usage", `Espruino does not run this as written:\n  ${list}`);
  }
  return { path, code: exactDecimals(toModule(source, isWide)), wanted: asked, modules };
};
