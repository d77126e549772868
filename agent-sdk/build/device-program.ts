/**
 * Checks a device program (one module of JavaScript, its types already erased) against what boards
 * run: every place that Espruino would not run as written, and the program in the form that
 * Espruino's `require` needs, with unchanged line numbers. `blindrelay check` and `flash` use it.
 */
import {
  type CallExpression,
  type Comment,
  type Literal,
  type MemberExpression,
  type Node,
  type Program,
  type Property,
  parse,
  type TemplateLiteral,
} from "acorn";
import { full } from "acorn-walk";
import type { BoardModule, ProgramCheck, Refusal } from "../src/board/dialect.ts";
import type { Mark } from "../src/board/source-map.ts";
import { checkDialect, type Finding } from "./built-file-dialect.ts";
import { decimalChanges } from "./decimals.ts";
import { marksOf, marksOfAll } from "./marks.ts";
import { applyChanges, type Change } from "./piece.ts";
import { MAKE_STORAGE } from "./program-storage.generated.ts";

export { BOARDS } from "./boards.ts";
export { bootCode, isBootCode } from "./boot.ts";
export { exactDecimals } from "./decimals.ts";
export { estimateMemory } from "./program-memory.ts";

const FIXES: readonly (readonly [RegExp, string])[] = [
  [/^syntax: Await|^for await|async or generator/, "return a promise and use then"],
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
  [/^directive/, "leave it out"],
  [/^delete inside for-in/, "loop over Object.keys(object)"],
  [/^syntax: Import/, "put the code into this file"],
  [/^member \.slice/, "use substring for text, filter for an array, subarray for bytes"],
  [/^member |^syntax: /, "boards lack it or run it differently: write it another way"],
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

interface InspectedModule {
  readonly edits: readonly Change[];
  readonly refused: readonly Refusal[];
  readonly modules: readonly string[];
  /** Which of the members that no board's own file has it uses. */
  readonly uses: ReadonlySet<string>;
}

interface Text {
  readonly start: number;
  readonly end: number;
  /** A template without substitutions. */
  readonly plain: boolean;
}

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

/** Of a string, or of a template without substitutions. */
const textOf = (node: Node): string | null => {
  const { type, value, quasis } = node as Node &
    Partial<Omit<Literal, "type">> & {
      readonly quasis?: TemplateLiteral["quasis"];
    };
  const text = type === "Literal" ? value : quasis?.length === 1 ? quasis[0]?.value.cooked : null;
  return typeof text === "string" ? text : null;
};

/** What is required by a literal name, in the order of the source. */
const requiredBy = (program: Program): string[] => {
  const found: { readonly at: number; readonly name: string }[] = [];
  full(program, (node) => {
    const { callee, arguments: [name] = [] } = node as CallExpression;
    if (node.type !== "CallExpression" || callee.type !== "Identifier") return;
    if (callee.name !== "require" || name === undefined) return;
    const text = textOf(name);
    if (text !== null) found.push({ at: node.start, name: text });
  });
  return [...new Set(found.sort((a, b) => a.at - b.at).map(({ name }) => name))];
};

/** The members of plain names, such as `storage` of `agent`, whatever it calls its agent. */
const membersOf = (program: Program): Set<string> => {
  const found = new Set<string>();
  full(program, (node) => {
    const { object, property, computed } = node as MemberExpression;
    if (node.type !== "MemberExpression" || object.type !== "Identifier" || computed) return;
    if (property.type === "Identifier") found.add(property.name);
  });
  return found;
};

const STORAGE_CALLS = "get:(k)=>s().get(k),set:(k,t)=>s().set(k,t),remove:(k)=>s().remove(k)";

/**
 * The module with what its program uses of an agent and a board's own file has no room for, after
 * it, so that its lines keep their numbers. The storage is made for each use.
 */
const withMembers = (module: string, uses: ReadonlySet<string>): string => {
  const storage = uses.has("storage");
  if (!storage && !uses.has("expose")) return module;
  const make = storage
    ? `function(){const exports={};${MAKE_STORAGE}return exports.makeStorage();}`
    : "0";
  const members = [
    uses.has("expose") ? "a.expose=()=>{};" : "",
    storage ? `a.storage={${STORAGE_CALLS}};` : "",
  ];
  return `${module}\nmodule.exports=(function(p,s){return (a)=>{${members.join("")}return p(a);};})(module.exports,${make});`;
};

/** Comments as the line ends in them. */
const withoutComments = (code: string, comments: readonly Comment[]): Change[] =>
  comments.map(({ start, end }) => ({
    start,
    end,
    text: code.slice(start, end).replace(/[^\n]+/g, ""),
  }));

/** Where and why acorn cannot read it. */
const unreadable = (code: string, error: unknown): Refusal => {
  const { pos = 0, message } = error as { pos?: number; message: string };
  const rule = `cannot be read: ${message.replace(/ \(\d+:\d+\)$/, "")}`;
  return { ...placeOf(code, pos), rule, text: firstLine(code.slice(pos)), fix: null };
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
    const refused = [unreadable(code, error)];
    return { edits: [], refused, modules: [], uses: new Set() };
  }
  const edits = withoutComments(code, comments);
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
  return { edits: inner, refused, modules: requiredBy(program), uses: membersOf(program) };
};

/** As long as the text that it replaces, so that the rest of the line keeps its columns. */
const padded = (edit: Change): Change =>
  edit.text.includes("\n") ? edit : { ...edit, text: edit.text.padEnd(edit.end - edit.start) };

/**
 * A character as a text has it, or an escape of one; other escapes are matched so that the second
 * backslash of `\\\\u` begins none.
 */
const CHARACTER = /\\u\{([0-9a-fA-F]+)\}|((?:\\u[0-9a-fA-F]{4})+)|\\[\s\S]|[^\0-\x7f]/gu;

const asBytes = (text: string): string =>
  [...new TextEncoder().encode(text)]
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
const bytesOf = (found: string, braced?: string, units?: string): string => {
  if (braced !== undefined) return keepAscii(found, String.fromCodePoint(parseInt(braced, 16)));
  if (units !== undefined) return keepAscii(found, JSON.parse(`"${units}"`) as string);
  return found.startsWith("\\") ? found : asBytes(found);
};

/** For an engine with Unicode strings: one with a four-digit escape is UTF-8 there. */
const unitsOf = (unit: string): string => {
  const hex = unit.charCodeAt(0).toString(16);
  return hex.length === 2 ? `\\x${hex}` : `\\u${hex.padStart(4, "0")}`;
};

/** What makes it ASCII. */
const asciiChanges = (code: string, isWide: boolean): Change[] =>
  Array.from(code.matchAll(isWide ? /[^\0-\x7f]/g : CHARACTER), (match) => {
    const [found, braced, units] = match;
    const text = isWide ? unitsOf(found) : bytesOf(found, braced, units);
    return { start: match.index, end: match.index + found.length, text };
  }).filter(({ start, end, text }) => code.slice(start, end) !== text);

/**
 * What `require` evaluates on the board, in ASCII, for a program without refusals. `isWide`: the
 * engine's strings hold every character, as on Bangle.js; elsewhere they hold UTF-8. A program that
 * has `agent.storage` or `agent.expose` brings it along.
 */
export const toModule = (code: string, isWide = false): string => {
  const { edits, uses } = readModule(code, isWide);
  const module = applyChanges(code, edits);
  return withMembers(applyChanges(module, asciiChanges(module, isWide)), uses);
};

/** Where the text that `toModule` and `exactDecimals` make comes from, line by line. */
export const marksOfProgram = (code: string, isWide = false): Mark[] => {
  const { edits } = readModule(code, isWide);
  const module = applyChanges(code, edits);
  const ascii = asciiChanges(module, isWide);
  const text = applyChanges(module, ascii);
  const decimals = decimalChanges(text);
  return marksOf(code, applyChanges(text, decimals), [edits, ascii, decimals]);
};

/**
 * A module that was written for Espruino, in ASCII and without comments, what it requires and where
 * its text comes from. It is not checked further.
 */
export const readBoardModule = (
  code: string,
  isWide = false,
):
  | { readonly code: string; readonly marks: readonly Mark[]; readonly modules: readonly string[] }
  | { readonly refused: Refusal } => {
  const comments: Comment[] = [];
  try {
    const program = parse(code, { ecmaVersion: "latest", onComment: comments });
    const edits = withoutComments(code, comments);
    const bare = applyChanges(code, edits);
    const ascii = asciiChanges(bare, isWide);
    const text = applyChanges(bare, ascii);
    const marks = marksOf(code, text, [edits, ascii]);
    return { code: text, marks, modules: requiredBy(program) };
  } catch (error) {
    return { refused: unreadable(code, error) };
  }
};

const PROGRAM_BEGINS = "const $p=function(){";
const moduleBegins = (name: string): string =>
  `Modules.addCached(${JSON.stringify(name)},function(){`;

/**
 * A program in one file with modules, each after those that it requires itself. The engine
 * evaluates a function that is cached as a module's text, in place in flash. The program is the
 * first, so that its lines keep their numbers, and evaluated last.
 */
export const withModules = (program: string, modules: readonly BoardModule[]): string => {
  if (modules.length === 0) return program;
  const cached = modules.map(({ name, code }) => `${moduleBegins(name)}${code}\n});`);
  return `${PROGRAM_BEGINS}${program}\n};${cached.join("")}Modules.addCached("program",$p);module.exports=require("program");`;
};

/** The same of where their texts come from; the program's file has the number 0. */
export const marksWithModules = (
  program: string,
  marks: readonly Mark[],
  modules: readonly BoardModule[],
): readonly Mark[] => {
  if (modules.length === 0) return marks;
  let before = `${PROGRAM_BEGINS}${program}\n};`;
  const placed = modules.map(({ name, code, marks }) => {
    const part = { marks, before: `${before}${moduleBegins(name)}` };
    before = `${part.before}${code}\n});`;
    return part;
  });
  return marksOfAll([{ marks, before: PROGRAM_BEGINS }, ...placed]);
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
  const { edits, refused: unfit, modules } = readModule(code, isWide);
  const refused = [...unfit];
  const asked: string[] = [];
  if (!unfit.some(({ rule }) => rule.startsWith("cannot be read"))) {
    for (const { rule, line, column, text } of findingsOf(applyChanges(code, edits.map(padded)))) {
      const place = { line, column: column + 1, text: firstLine(text) };
      const free = NAME_RULE.exec(rule)?.[1];
      if (free !== undefined && imports(code, free)) continue;
      if (free !== undefined && NOT_ON_BOARDS.has(free) && !declares(code, free)) {
        refused.push({ ...place, rule: `unknown name ${free}`, fix: NODE_ONLY });
        continue;
      }
      const declared = free !== undefined && declares(code, free);
      const name = declared ? undefined : (free ?? MEMBER_RULE.exec(rule)?.[1]);
      const isRefused = refused.some((one) => one.line === line && one.column === place.column);
      if (name === undefined) refused.push({ ...place, rule, fix: fixOf(rule) });
      else if (name !== "module" && !isRefused && !asked.includes(name)) asked.push(name);
    }
  }
  refused.sort((a, b) => a.line - b.line || a.column - b.column);
  return { refused, asked, modules: modules.filter((name) => name !== "blindrelay") };
};

const declares = (code: string, name: string): boolean =>
  new RegExp(`\\b(const|let|var|class|function)\\s+${name.replaceAll("$", "\\$")}\\b`).test(code);

/** The import is what is wrong with it. */
const imports = (code: string, name: string): boolean =>
  new RegExp(`^\\s*import\\b[^;'"]*\\b${name.replaceAll("$", "\\$")}\\b`, "m").test(code);
