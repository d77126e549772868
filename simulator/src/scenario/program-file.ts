/**
 * Device programs as files, for both worlds: read, types erased, parsed. Mistakes are reported with
 * their place, before anything is started.
 */
import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { dialectWarning, eraseTypes, loadDialect } from "@blindrelay/agent-sdk/dialect";
import { Failure } from "@blindrelay/protocol/command-line";
import { decodeText } from "@blindrelay/protocol/parse-json";
import { parse } from "acorn";
import { type Problem, ScenarioError } from "./problems.ts";
import type { Tree } from "./tree.ts";

export type { Tree };

export interface ProgramText {
  /** As it is in the file. */
  readonly source: string;
  /** The same without types, every column where it was. */
  readonly text: string;
  readonly tree: Tree;
}

/** Throws a Failure (usage) for what is no file. */
export function readProgramFile(path: string, shown: string): string {
  try {
    return decodeText(readFileSync(path));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === "ENOENT" ? "file not found" : message;
    throw new Failure("usage", `the device program ${shown} cannot be read: ${reason}`);
  }
}

/** `file`: as errors name it. Throws a ScenarioError with line and column. */
export function parseProgramText(source: string, file: string): ProgramText {
  const text = /\.m?ts$/.test(extname(file)) ? stripTypes(source, file) : source;
  try {
    const tree = parse(text, {
      ecmaVersion: "latest",
      sourceType: "module",
      locations: true,
      allowAwaitOutsideFunction: true,
    }) as unknown as Tree;
    return { source, text, tree };
  } catch (error) {
    const { loc, message } = error as { loc?: { line: number; column: number }; message: string };
    const { line, column } = loc ?? { line: 1, column: 0 };
    throw new ScenarioError([
      { file, line, column: column + 1, message: message.replace(/ \([0-9:]+\)$/, "") },
    ]);
  }
}

export const EXPORT = "a device program exports a function: export default (agent) => { … }";

/** What is wrong where a program exports no function; null if it does. */
export function missingExport(tree: Tree, file: string): Problem | null {
  const exported = (tree.body as Tree[]).some(
    ({ type, specifiers = [] }) =>
      type === "ExportDefaultDeclaration" ||
      (specifiers as Tree[]).some((specifier) => {
        const as = specifier.exported as Tree | undefined;
        return (as?.name ?? as?.value) === "default";
      }),
  );
  return exported ? null : { file, line: 1, column: 1, message: EXPORT };
}

/**
 * Checks a program that a real process will import. Throws as the two above do; resolves with a
 * warning where boards do not run it as written, otherwise with null.
 */
export async function checkLiveProgram(path: string, shown: string): Promise<string | null> {
  const { text, tree } = parseProgramText(readProgramFile(path, shown), shown);
  const problem = missingExport(tree, shown);
  if (problem !== null) throw new ScenarioError([problem]);
  const { checkProgram } = await loadDialect();
  return dialectWarning(shown, checkProgram(text).refused);
}

function stripTypes(source: string, file: string): string {
  const erased = eraseTypes(source);
  if ("code" in erased) return erased.code;
  const { line, column, rule } = erased.refused;
  throw new ScenarioError([{ file, line, column, message: rule }]);
}

export const nameOf = (node: Tree): string => String(node.name ?? node.value);

/**
 * The text with its imports and exports written as a function's body says them, every other
 * character where it was: `__x.default` becomes the program, `__imports` is a map of modules.
 */
export function asFunctionBody(text: string, tree: Tree): string {
  const edits: { from: number; to: number; text: string }[] = [];
  const exported: string[] = [];
  for (const node of tree.body as Tree[]) {
    const { start, end } = node;
    if (node.type === "ImportDeclaration") {
      edits.push({ from: start, to: end, text: importText(node) });
    } else if (node.type === "ExportDefaultDeclaration") {
      const declaration = node.declaration as Tree;
      const named = /(Function|Class)Declaration/.test(declaration.type) && declaration.id !== null;
      if (named) {
        edits.push({ from: start, to: declaration.start, text: "" });
        exported.push(nameOf(declaration.id as Tree));
      } else {
        edits.push({ from: start, to: declaration.start, text: "__x.default =" });
        // Without its name a declaration is an expression, which needs a semicolon after it.
        edits.push({ from: end, to: end, text: ";" });
      }
    } else if (node.type === "ExportNamedDeclaration") {
      const declaration = node.declaration as Tree | null;
      edits.push({ from: start, to: declaration === null ? end : declaration.start, text: "" });
      for (const specifier of node.specifiers as Tree[]) {
        if (nameOf(specifier.exported as Tree) === "default") {
          exported.push(nameOf(specifier.local as Tree));
        }
      }
    }
  }
  let body = text;
  for (const { from, to, text: instead } of edits.sort((a, b) => b.from - a.from)) {
    const gone = body.slice(from, to);
    // Line ends stay, so that a line is still where it was.
    const rest = gone.slice(instead.length).replace(/[^\n]/g, " ");
    body = body.slice(0, from) + instead + rest + body.slice(to);
  }
  return exported.length === 0 ? body : `${body}\n__x.default = ${exported.at(-1)};`;
}

function importText(node: Tree): string {
  const from = JSON.stringify((node.source as Tree).value);
  const names = (node.specifiers as Tree[]).map((specifier) => {
    const local = nameOf(specifier.local as Tree);
    const imported = specifier.imported as Tree | undefined;
    return imported === undefined ? local : `${nameOf(imported)}: ${local}`;
  });
  return `const {${names.join(", ")}}=__imports.get(${from});`;
}
