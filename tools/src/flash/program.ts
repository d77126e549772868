/**
 * A device program on its way to a board: types erased, `export default` turned into what Espruino's
 * `require` wants, comments dropped, decimals written as the board reads them exactly, every line where
 * it stood. What the board would run wrongly and
 * in silence is refused with its place; names that only a board knows are asked of the board.
 */
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { basename } from "node:path";
import { type Comment, type Program, parse } from "acorn";
import { Failure } from "../failure.ts";
import { type Finding, loadDialect } from "./sdk.ts";

const HINTS: readonly (readonly [RegExp, string])[] = [
  [/^syntax: (Await|ForAwait)|async or generator/, "return a promise and use then"],
  [/^syntax: (ObjectPattern|ArrayPattern)/, "read the members one by one"],
  [/^syntax: (SpreadElement|RestElement)/, "use Object.assign, concat, or write them out"],
  [/^syntax: AssignmentPattern/, "test for undefined in the function"],
  [/^syntax: ChainExpression/, "test for null first"],
  [/^syntax: FunctionDeclaration/, "write const name = () => …, before its first use"],
  [/^syntax: LabeledStatement/, "use a flag"],
  [/^var$/, "use let or const"],
  [
    /captured loop variable/,
    "the board gives every closure the last value: use forEach or a function",
  ],
  [/class that extends Error/, "throw an Error with a member of its own"],
  [/arrow in a class field/, "the arrow has no this there: make it a method"],
  [/^BigInt|operator \*\*/, "use Number and Math.pow"],
  [/regex with/, "the board matches it wrongly: use simpler expressions"],
  [/unknown or later defined name/, "the board has no such name, or it is defined further down"],
];

const lineAt = (text: string, at: number): number => text.slice(0, at).split("\n").length;

/** Text of the same lines, with stretches replaced. */
const withChanges = (
  text: string,
  changes: readonly { readonly start: number; readonly end: number; readonly text: string }[],
): string => {
  let result = "";
  let at = 0;
  for (const change of [...changes].sort((a, b) => a.start - b.start)) {
    result += text.slice(at, change.start) + change.text;
    at = change.end;
  }
  return result + text.slice(at);
};

const refuse = (path: string, line: number, message: string): Failure =>
  new Failure("usage", `${path}:${line}: ${message}`);

/** What `require` evaluates on the board; throws a Failure (usage) for what is no device program. */
export const toModule = (source: string, path: string): string => {
  let code: string;
  let program: Program;
  const comments: Comment[] = [];
  try {
    code = /\.[cm]?ts$/.test(path) ? stripTypeScriptTypes(source) : source;
    program = parse(code, { ecmaVersion: "latest", sourceType: "module", onComment: comments });
  } catch (error) {
    throw new Failure("usage", `${path} cannot be read: ${(error as Error).message}`, error);
  }
  const changes = comments.map(({ start, end }) => ({
    start,
    end,
    text: code.slice(start, end).replace(/[^\n]+/g, ""),
  }));
  let exports = 0;
  for (const statement of program.body) {
    const line = lineAt(code, statement.start);
    if (statement.type === "ExportDefaultDeclaration") {
      exports++;
      const { start } = statement;
      changes.push({ start, end: statement.declaration.start, text: "module.exports=" });
      // A declaration needs no semicolon; the expression that it becomes does.
      if (!code.slice(0, statement.end).endsWith(";")) {
        changes.push({ start: statement.end, end: statement.end, text: ";" });
      }
    } else if (statement.type === "ExportNamedDeclaration" && statement.declaration) {
      changes.push({ start: statement.start, end: statement.declaration.start, text: "" });
    } else if (statement.type.startsWith("Import") || statement.type.startsWith("Export")) {
      throw refuse(
        path,
        line,
        "a device program is one file: it imports nothing and re-exports nothing",
      );
    }
  }
  if (exports === 0)
    throw refuse(path, 1, "it does not export a function: export default (agent) => {…}");
  const inner = changes.filter(
    (change) =>
      !changes.some(
        (other) => other !== change && other.start <= change.start && change.end < other.end,
      ),
  );
  return toAscii(withChanges(code, inner), path);
};

/** Strings there are 8-bit, so a degree sign can be said and a Greek letter cannot. */
const toAscii = (code: string, path: string): string =>
  code.replace(/\P{ASCII}/gu, (char, at: number) => {
    const hex = (char.codePointAt(0) as number).toString(16);
    if (hex.length <= 2) return `\\x${hex}`;
    throw refuse(path, lineAt(code, at), `Espruino's strings are 8-bit and cannot hold ${char}`);
  });

export interface DeviceProgram {
  readonly path: string;
  /** As it goes into Storage; ASCII. */
  readonly code: string;
  /** Names and members that the board must have, because the SDK's own code uses none of them. */
  readonly wanted: readonly string[];
}

const NAME_RULE = /^unknown or later defined name (\S+)$/;
const MEMBER_RULE = /^([A-Za-z_$][\w$]*\.[A-Za-z_$][\w$]*)$/;

const describe = (path: string, { rule, line, text }: Finding): string => {
  const hint = HINTS.find(([pattern]) => pattern.test(rule))?.[1];
  const first = text.split("\n")[0]?.slice(0, 60) ?? "";
  return `${path}:${line}: ${rule}: ${first}${hint === undefined ? "" : ` (${hint})`}`;
};

/** Reads and checks a device program. Throws a Failure (usage) that lists everything Espruino would not run. */
export const readProgram = async (path: string): Promise<DeviceProgram> => {
  let source: string;
  try {
    source = readFileSync(path, "utf8");
  } catch (error) {
    throw new Failure("usage", `there is no device program ${path}`, error);
  }
  const name = basename(path);
  const { checkDialect, exactDecimals } = await loadDialect();
  const code = exactDecimals(toModule(source, name));
  const wanted: string[] = [];
  const wrong: string[] = [];
  const findings = checkDialect(code).sort((a, b) => a.line - b.line);
  for (const finding of findings) {
    const free = NAME_RULE.exec(finding.rule)?.[1];
    const declared = free !== undefined && declares(code, free);
    const asked = declared ? undefined : (free ?? MEMBER_RULE.exec(finding.rule)?.[1]);
    if (asked === undefined) wrong.push(describe(name, finding));
    else if (asked !== "module" && !wanted.includes(asked)) wanted.push(asked);
  }
  if (wrong.length > 0) {
    throw new Failure("usage", `Espruino does not run this as written:\n  ${wrong.join("\n  ")}`);
  }
  return { path, code, wanted };
};

const declares = (code: string, name: string): boolean =>
  new RegExp(`\\b(const|let|var|class|function)\\s+${name.replaceAll("$", "\\$")}\\b`).test(code);
