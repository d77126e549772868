/** Reads a device program for a board, and erases its types. */
import { existsSync } from "node:fs";
import { type BoardProgram, toBoardProgram } from "@blindrelay/agent-sdk/board";
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

/**
 * Reads and checks a device program. `isWide`: for a board with Unicode strings. Throws a Failure
 * (usage) that lists everything boards do not run.
 */
export const readProgram = async (path: string, isWide = false): Promise<BoardProgram> => {
  const source = readSource(path);
  return toBoardProgram(await loadDialect(), path, source, isWide);
};
