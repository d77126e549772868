/**
 * Finds what boards do not run in a device program: agent-sdk/build/device-program.ts in a
 * checkout, or the same in one file in the published package. Loaded on demand, because it includes
 * a parser.
 */
import { existsSync } from "node:fs";
import * as modules from "node:module";
import type { Dialect, Refusal } from "../board/dialect.ts";

export type { BoardMemory, BoardModule, Refusal } from "../board/dialect.ts";
export { describeRefusal } from "../board/dialect.ts";

export const loadDialect = async (): Promise<Dialect> => {
  const source = new URL("../../build/device-program.ts", import.meta.url);
  const place = existsSync(source) ? source : new URL("../build/dialect.js", import.meta.url);
  return (await import(place.href)) as Dialect;
};

/**
 * JavaScript without its types, with unchanged columns, or the reason why it cannot be read. Needs
 * Node 22.13 or newer.
 */
export const eraseTypes = (
  code: string,
): { readonly code: string } | { readonly refused: Refusal } => {
  try {
    return { code: modules.stripTypeScriptTypes(code) };
  } catch (error) {
    const { message, stack = "" } = error as Error;
    // Node gives the place only in the stack: `:LINE`, source, and marks under the place.
    const lines = stack.split("\n");
    const [, line = "1"] = /:(\d+)$/.exec(lines[0] ?? "") ?? [];
    const marks = lines.findIndex((text) => /^\s*\^+$/.test(text));
    const at = marks < 1 ? 0 : (lines[marks] as string).indexOf("^");
    const text = marks < 1 ? "" : (lines[marks - 1] as string).slice(at);
    const rule = `cannot be read: ${message}`;
    return { refused: { line: Number(line), column: at + 1, rule, text, fix: null } };
  }
};

/** Whether no engine could read it. */
export const isSyntax = ({ rule }: Refusal): boolean => rule.startsWith("cannot be read");

/** For users who run a program on Node and may later move it to a board; null if boards run it. */
export const dialectWarning = (path: string, refused: readonly Refusal[]): string | null => {
  const { length } = refused;
  if (length === 0) return null;
  const places = `${length} ${length === 1 ? "place" : "places"}`;
  return `warn: boards do not run ${path} as written: ${places}; see blindrelay check ${path}`;
};
