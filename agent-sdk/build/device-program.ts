/**
 * Checks a device program (one module of JavaScript, its types already erased) against what boards
 * run: every place that Espruino would not run as written, and the program in the form that
 * Espruino's `require` needs, with unchanged line numbers. `blindrelay check` and `flash` use it.
 */
import {
  type CallExpression,
  type Comment,
  type Literal,
  type Program,
  type Property,
  parse,
  type TemplateLiteral,
} from "acorn";
import { full } from "acorn-walk";
import type { ProgramCheck, Refusal } from "../src/node/dialect.ts";
import { checkDialect, type Finding } from "./built-file-dialect.ts";

export { BOARDS } from "./boards.ts";
export { bootCode, isBootCode } from "./boot.ts";
export { exactDecimals } from "./decimals.ts";
export { estimateMemory } from "./program-memory.ts";

const FIXES: readonly (readonly [RegExp, string])[] = [
  [/^syntax: (Await|ForAwait)|async or generator/, "return a promise and use then"],
  [/^syntax: (ObjectPattern|ArrayPattern)/, "read the members one by one"],
  [/^syntax: (SpreadElement|RestElement)/, "use Object.assign, concat, or write them out"],
  [/^syntax: AssignmentPattern/, "test for undefined in the function"],
  [/^syntax: ChainExpression/, "test for null or undefined first"],
  [/^syntax: FunctionDeclaration/, "write const name = () => …, before its first use"],
  [/^syntax: LabeledStatement/, "use a flag"],
  [/^syntax: (TaggedTemplate|Yield)/, "call a function"],
  [/^syntax: PrivateIdentifier/, "use a name without #"],
  [/^operator (\?\?|\|\||&&)=/, "write the assignment out"],
  [/^var$/, "use let or const"],
  [/^computed key/, "assign it: object[key] = value"],
  [
    /captured loop variable/,
    "the board gives every closure the last value: use forEach or a function",
  ],
  [/class that extends Error/, "throw an Error with an added member"],
  [/class field without a value/, "assign it in the constructor"],
  [/class field that all objects/, "assign it in the constructor"],
  [/assignment to length/, "use splice, or a new array"],
  [/^BigInt|operator \*\*/, "use Number and Math.pow"],
  [/regex with/, "the board matches it wrongly: use simpler expressions"],
  [/unknown or later defined name/, "define it further up"],
];

/** Globals of Node and browsers that boards lack: using one is an error on any board. */
const NOT_ON_BOARDS = new Set(
  `Map Set WeakMap WeakSet WeakRef Symbol Proxy Reflect BigInt RangeError Intl Temporal Buffer URL
  URLSearchParams TextEncoder TextDecoder AbortController crypto fetch structuredClone queueMicrotask
  setImmediate performance globalThis window document WebSocket localStorage alert`.split(/\s+/),
);
const NODE_ONLY = "boards do not have it; a program that must run on them does without";

const fixOf = (rule: string): string | null =>
  FIXES.find(([pattern]) => pattern.test(rule))?.[1] ?? null;

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

interface InspectedModule {
  /** Named by `require`, but for what every board of ours has. */
  readonly modules: readonly string[];
  readonly edits: readonly Edit[];
  readonly refused: readonly Refusal[];
}

interface Text {
  readonly start: number;
  readonly end: number;
  /** A template without substitutions. */
  readonly plain: boolean;
}

const ON_EVERY_BOARD = ["blindrelay", "Storage"];

const modulesOf = (program: Program): string[] => {
  const names = new Set<string>();
  full(program, (node) => {
    if (node.type !== "CallExpression") return;
    const { callee, arguments: given } = node as CallExpression;
    const [name] = given as Literal[];
    if (callee.type !== "Identifier" || callee.name !== "require") return;
    if (name?.type === "Literal" && typeof name.value === "string") names.add(name.value);
  });
  return [...names].filter((name) => !ON_EVERY_BOARD.includes(name));
};

/** The positions of strings and templates. */
const textsOf = (program: Program): Text[] => {
  const texts: Text[] = [];
  full(program, (node) => {
    const { start, end } = node;
    if (node.type === "Literal") {
      if (typeof (node as Literal).value === "string") texts.push({ start, end, plain: true });
    } else if (node.type === "Property" || node.type.endsWith("Definition")) {
      // The walk leaves names out that are no expressions.
      const { key } = node as Property;
      if (key?.type === "Literal") texts.push({ start: key.start, end: key.end, plain: true });
    } else if (node.type === "TemplateLiteral") {
      texts.push({ start, end, plain: (node as TemplateLiteral).expressions.length === 0 });
    }
  });
  // The inner one first: a string may be inside a template.
  return texts.sort((a, b) => a.end - a.start - (b.end - b.start));
};

const placeOf = (code: string, at: number): { readonly line: number; readonly column: number } => {
  const before = code.slice(0, at).split("\n");
  return { line: before.length, column: (before.at(-1) as string).length + 1 };
};

const firstLine = (text: string): string => (text.split("\n")[0] as string).slice(0, 60);

/** A character from U+0080, or an escape of one (or of an ASCII one). */
const BEYOND_ASCII = /[^\0-\x7f]|\\u([0-9a-fA-F]{4})|\\u\{([0-9a-fA-F]+)\}/gu;

/** The edits that turn the module into `module.exports=…`, and what no edit can convert. */
const readModule = (code: string, isWide = false): InspectedModule => {
  const refused: Refusal[] = [];
  const refuse = (at: number, rule: string, fix: string | null, text = ""): void => {
    refused.push({ ...placeOf(code, at), rule, text: firstLine(text), fix });
  };
  const comments: Comment[] = [];
  let program: Program;
  try {
    program = parse(code, { ecmaVersion: "latest", sourceType: "module", onComment: comments });
  } catch (error) {
    const { pos = 0, message } = error as { pos?: number; message: string };
    refuse(pos, `cannot be read: ${message.replace(/ \(\d+:\d+\)$/, "")}`, null, code.slice(pos));
    return { modules: [], edits: [], refused };
  }
  const edits: Edit[] = comments.map(({ start, end }) => ({
    start,
    end,
    text: code.slice(start, end).replace(/[^\n]+/g, ""),
  }));
  let exports = 0;
  for (const statement of program.body) {
    const { start, end } = statement;
    if (statement.type === "ExportDefaultDeclaration") {
      exports++;
      edits.push({ start, end: statement.declaration.start, text: "module.exports=" });
      // A declaration needs no semicolon; the expression that replaces it does.
      if (!code.slice(0, end).endsWith(";")) edits.push({ start: end, end, text: ";" });
    } else if (statement.type === "ExportNamedDeclaration" && statement.declaration) {
      edits.push({ start, end: statement.declaration.start, text: "" });
    } else if (statement.type.startsWith("Import") || statement.type.startsWith("Export")) {
      const rule = "a device program is one file: it imports nothing and re-exports nothing";
      refuse(start, rule, "put the code into this file", code.slice(start, end));
      // Said once, and so the rest can be read.
      edits.push({ start, end, text: code.slice(start, end).replace(/[^\n]+/g, "") });
    }
  }
  if (exports === 0) {
    refuse(0, "it does not export a function", "write export default (agent) => {…}");
  }
  const inner = edits.filter(
    (edit) =>
      !edits.some((other) => other !== edit && other.start <= edit.start && edit.end < other.end),
  );
  const texts = textsOf(program);
  for (const { 0: found, 1: units, 2: braced, index } of code.matchAll(BEYOND_ASCII)) {
    const point = found.startsWith("\\")
      ? Number.parseInt(units ?? braced ?? "", 16)
      : (found.codePointAt(0) as number);
    if (point < 0x80) continue;
    const character = String.fromCodePoint(Math.min(point, 0x10ffff));
    if (comments.some(({ start, end }) => start < index && index < end)) continue;
    const within = texts.find(({ start, end }) => start < index && index < end);
    if (within === undefined)
      refuse(index, `Espruino has no ${character} outside of strings`, null);
    else if (isWide && !within.plain && character > "\xff") {
      const rule = `a template with \${…} forgets on the board that ${character} is UTF-8`;
      refuse(index, rule, 'write "…" + value');
    }
  }
  return { modules: modulesOf(program), edits: inner, refused };
};

const asIs = ({ text }: Edit): string => text;

/** As long as the text that it replaces, so that the rest of the line keeps its columns. */
const padded = ({ start, end, text }: Edit): string =>
  text.includes("\n") ? text : text.padEnd(end - start);

const withEdits = (
  code: string,
  edits: readonly Edit[],
  textOf: (edit: Edit) => string,
): string => {
  let result = "";
  let at = 0;
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    result += code.slice(at, edit.start) + textOf(edit);
    at = edit.end;
  }
  return result + code.slice(at);
};

/**
 * A character as a text has it, or an escape of one; other escapes are matched so that the second
 * backslash of `\\\\u` begins none.
 */
const CHARACTER = /\\u\{([0-9a-fA-F]+)\}|((?:\\u[0-9a-fA-F]{4})+)|\\[\s\S]|[^\0-\x7f]/gu;

const asBytes = (text: string): string =>
  [...Buffer.from(text, "utf8")]
    .map((byte) => (byte < 0x80 ? String.fromCharCode(byte) : `\\x${byte.toString(16)}`))
    .join("");

/** Escapes of ASCII, such as of a quote, stay escapes. */
const keepAscii = (escapes: string, text: string): string =>
  /[^\0-\x7f]/.test(text)
    ? text.replace(/[\0-\x7f]|[^\0-\x7f]+/gu, (part) =>
        part < "\x80" ? `\\x${part.charCodeAt(0).toString(16).padStart(2, "0")}` : asBytes(part),
      )
    : escapes;

/** A text in UTF-8, one byte per character. `\xE9` stays the byte that a program means by it. */
const withBytes = (code: string): string =>
  code.replace(CHARACTER, (found, braced?: string, units?: string) => {
    if (braced !== undefined) return keepAscii(found, String.fromCodePoint(parseInt(braced, 16)));
    if (units !== undefined) return keepAscii(found, JSON.parse(`"${units}"`) as string);
    return found.startsWith("\\") ? found : asBytes(found);
  });

/** For an engine with Unicode strings: one with a four-digit escape is UTF-8 there. */
const withUnits = (code: string): string =>
  code.replace(/[^\0-\x7f]/g, (unit) => {
    const hex = unit.charCodeAt(0).toString(16);
    return hex.length === 2 ? `\\x${hex}` : `\\u${hex.padStart(4, "0")}`;
  });

/**
 * What `require` evaluates on the board, in ASCII, for a program without refusals. `isWide`: the
 * engine's strings hold every character, as on Bangle.js; elsewhere they hold UTF-8.
 */
export const toModule = (code: string, isWide = false): string => {
  const module = withEdits(code, readModule(code, isWide).edits, asIs);
  return isWide ? withUnits(module) : withBytes(module);
};

/**
 * What a module may contain but a script, which is how a board reads it, may not: top-level
 * `await`, `import.meta`.
 */
const findingsOf = (script: string): Finding[] => {
  try {
    return checkDialect(script);
  } catch (error) {
    const { pos = 0, message } = error as { pos?: number; message: string };
    const { line, column } = placeOf(script, pos);
    const rule = `syntax: ${message.replace(/ \(\d+:\d+\)$/, "")}`;
    return [{ rule, line, column: column - 1, text: script.slice(pos) }];
  }
};

const NAME_RULE = /^unknown or later defined name (\S+)$/;
const MEMBER_RULE = /^([A-Za-z_$][\w$]*\.[A-Za-z_$][\w$]*)$/;

/**
 * Everything in a device program that boards do not run as written, and what has to be checked on
 * the board.
 */
export const checkProgram = (code: string, isWide = false): ProgramCheck => {
  const { modules, edits, refused: unfit } = readModule(code, isWide);
  const refused = [...unfit];
  const asked = modules.map((name) => `require(${JSON.stringify(name)})`);
  if (!unfit.some(({ rule }) => rule.startsWith("cannot be read"))) {
    for (const { rule, line, column, text } of findingsOf(withEdits(code, edits, padded))) {
      const place = { line, column: column + 1, text: firstLine(text) };
      const free = NAME_RULE.exec(rule)?.[1];
      if (free !== undefined && imports(code, free)) continue;
      if (free !== undefined && NOT_ON_BOARDS.has(free) && !declares(code, free)) {
        refused.push({ ...place, rule: `unknown name ${free}`, fix: NODE_ONLY });
        continue;
      }
      const declared = free !== undefined && declares(code, free);
      const name = declared ? undefined : (free ?? MEMBER_RULE.exec(rule)?.[1]);
      if (name === undefined) refused.push({ ...place, rule, fix: fixOf(rule) });
      else if (name !== "module" && !asked.includes(name)) asked.push(name);
    }
  }
  refused.sort((a, b) => a.line - b.line || a.column - b.column);
  return { refused, asked };
};

const declares = (code: string, name: string): boolean =>
  new RegExp(`\\b(const|let|var|class|function)\\s+${name.replaceAll("$", "\\$")}\\b`).test(code);

/** The import is what is wrong with it. */
const imports = (code: string, name: string): boolean =>
  new RegExp(`^\\s*import\\b[^;'"]*\\b${name.replaceAll("$", "\\$")}\\b`, "m").test(code);
