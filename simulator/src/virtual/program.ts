/**
 * Device programs in the virtual world: the unchanged file, with the world's clock, timers and
 * randomness instead of the real ones, and with separate variables for every device and every
 * start, as on a board.
 *
 * The module is read as text and becomes a function with the permitted globals as its parameters;
 * `export default` becomes an assignment of the same length, so lines and columns do not change.
 * Uses of real time, randomness or I/O are found in the source, before anything runs.
 */
import { basename } from "node:path";
import { constants, createContext, Script } from "node:vm";
import type { Program } from "@blindrelay/agent-sdk";
import { Streams } from "@blindrelay/agent-sdk/streams";
import { textOfThrown } from "@blindrelay/protocol/command-line";
import { getOrMake } from "../base/maps.ts";
import { type Problem, ScenarioError } from "../scenario/problems.ts";
import {
  asFunctionBody,
  EXPORT,
  missingExport,
  nameOf,
  parseProgramText,
  readProgramFile,
} from "../scenario/program-file.ts";
import { type Tree, walk } from "../scenario/tree.ts";
import { LOCALE } from "./dates.ts";

/** The world's globals: what a program finds under these names. */
export interface Globals {
  Date: DateConstructor;
  Math: Math;
  setTimeout: (fn: () => void, ms?: number) => unknown;
  clearTimeout: (handle: unknown) => void;
  setInterval: (fn: () => void, ms?: number) => unknown;
  clearInterval: (handle: unknown) => void;
  setImmediate: (fn: () => void) => unknown;
  clearImmediate: (handle: unknown) => void;
  crypto: object;
  performance: object;
  console: object;
}

/** What device programs cannot use in the virtual world, and why. */
const FORBIDDEN: ReadonlyMap<string, string> = new Map([
  ...["process", "require", "module", "Deno", "Bun"].map((name) => [name, "the real process"]),
  ...["fetch", "WebSocket", "XMLHttpRequest", "EventSource", "navigator"].map((name) => [
    name,
    "the real network",
  ]),
  ...["Worker", "SharedArrayBuffer", "Atomics", "BroadcastChannel", "MessageChannel"].map(
    (name) => [name, "real threads"],
  ),
  ...["CompressionStream", "DecompressionStream"].map((name) => [name, "real threads"]),
  ...["localStorage", "sessionStorage"].map((name) => [name, "what all devices share"]),
  ...["eval", "Function", "globalThis", "global", "window", "self"].map((name) => [
    name,
    "the real globals",
  ]),
  // AbortSignal.timeout, and the times of files, events and measurements.
  ...["Temporal", "Intl", "AbortSignal", "File", "Event", "CustomEvent", "PerformanceMark"].map(
    (name) => [name, "the real clock"],
  ),
  ...["WeakRef", "FinalizationRegistry"].map((name) => [name, "the garbage collector's timing"]),
] as [string, string][]);

/** Modules that a device program may import: parts of the SDK that run on every board. */
const IMPORTS: ReadonlyMap<string, object> = new Map([
  ["@blindrelay/agent-sdk/streams", { Streams }],
]);

/** A program that can be started any number of times. */
export interface LoadedProgram {
  /** As errors name it. */
  readonly file: string;
  readonly source: string;
  /** Uses promises or async functions: it may keep running after a handler returned. */
  readonly isAsync: boolean;
  /**
   * A fresh instance of the module: its default export, with separate variables. `stubs`: more
   * globals; the program's own names come first.
   */
  instantiate(globals: Globals, stubs?: Readonly<Record<string, unknown>>): Program;
}

/**
 * Reads a program. `shown`: the file's name in errors. Throws a Failure if it is not a file, and a
 * ScenarioError that names line and column.
 */
export function loadProgram(path: string, shown: string): LoadedProgram {
  return parseProgram(readProgramFile(path, shown), shown);
}

export function parseProgram(given: string, file: string): LoadedProgram {
  const { source, text, tree } = parseProgramText(given, file);
  const problems = examine(tree, file);
  if (problems.length > 0) throw new ScenarioError(problems);
  const body = asFunctionBody(text, tree);
  // The inner function lets a program declare names that the world also has.
  const realm = makeRealm();
  const compile = (names: readonly string[]): ((...args: unknown[]) => void) => {
    const head = `(function (__x, __imports, ${names.join(", ")}) { return (function () { "use strict"; `;
    const script = new Script(`${head}${body}\n}).call(undefined); })`, {
      filename: file,
      columnOffset: -head.length,
    });
    return script.runInContext(realm) as (...args: unknown[]) => void;
  };
  const used = namesIn(tree);
  // One for each set of names that globals and stubs have.
  const compiled = new Map<string, ReturnType<typeof compile>>();
  return {
    file,
    source,
    isAsync: /\b(async|await|Promise)\b|\.then\b/.test(text),
    instantiate(globals, stubs = {}) {
      const exported: { default?: unknown } = {};
      const given: Record<string, unknown> = { ...globals, ...stubs };
      const names = Object.keys(given).filter((name) => used.has(name) || name in globals);
      const make = getOrMake(compiled, names.join(), () => compile(names));
      make(exported, IMPORTS, ...names.map((name) => given[name]));
      if (typeof exported.default !== "function") throw new Error(EXPORT);
      return exported.default as Program;
    },
  };
}

/** A function from its source text, in a realm of its own. */
export function compileFunction(source: string): (...values: unknown[]) => unknown {
  const made = new Script(`"use strict"; (${source}\n)`).runInContext(makeRealm());
  return made as (...values: unknown[]) => unknown;
}

/**
 * Where a program's own objects come from: without what is forbidden, and without code from
 * strings, which a check of the source cannot see.
 */
function makeRealm(): object {
  const codeGeneration = { strings: false, wasm: false };
  const realm = createContext(constants.DONT_CONTEXTIFY, { codeGeneration });
  const ours = Object.entries(Object.getOwnPropertyDescriptors(globalThis));
  for (const [name, property] of ours) {
    if (!(name in realm) && !FORBIDDEN.has(name)) Object.defineProperty(realm, name, property);
  }
  SAME_LANGUAGE.runInContext(realm);
  return realm;
}

/** What depends on a language does not depend on the machine's. */
const SAME_LANGUAGE = new Script(`{
  const locale = ${JSON.stringify(LOCALE)};
  for (const [{ prototype }, name, at] of [
    [Number, "toLocaleString", 0],
    [BigInt, "toLocaleString", 0],
    [String, "localeCompare", 1],
    [String, "toLocaleUpperCase", 0],
    [String, "toLocaleLowerCase", 0],
  ]) {
    const own = prototype[name];
    const value = { [name](...args) {
      if (args[at] === undefined) args[at] = locale;
      return own.apply(this, args);
    } }[name];
    Object.defineProperty(prototype, name, { value, configurable: true, writable: true });
  }
}`);

/**
 * What a program threw, and where in it, in a line: `Error: no water (pump.js:3:9)`. Without the
 * folders that a stack names, so that a trace is the same on every machine and in a replay.
 */
export function describeError(error: unknown, { file }: Pick<LoadedProgram, "file">): string {
  const name = basename(file);
  const text = textOfThrown(error);
  try {
    const { stack } = Object(error) as Error;
    const [, place] = String(stack).split(`${name}:`);
    const at = /^[0-9]+:[0-9]+/.exec(place ?? "");
    return at === null ? text : `${text} (${name}:${at[0]})`;
  } catch {
    return text; // a program may give an error a stack that cannot be read
  }
}

/** As above, of an error that one of several programs threw; undefined if there are none. */
export function describeErrorOf(
  programs: readonly Pick<LoadedProgram, "file">[],
  error: unknown,
): string | undefined {
  const texts = programs.map((program) => describeError(error, program));
  // The longest also names a place.
  return texts.toSorted((a, b) => b.length - a.length)[0];
}

function examine(tree: Tree, file: string): Problem[] {
  const problems: Problem[] = [];
  const declared = new Set<string>();
  const used: Tree[] = [];
  const report = (node: Tree, message: string): void => {
    const { line, column } = (node.loc as { start: { line: number; column: number } }).start;
    problems.push({ file, line, column: column + 1, message });
  };
  const insideFunction = new Set<Tree | null>();
  walk(tree, (node, parent, key) => {
    if (insideFunction.has(parent) || /Function/.test(node.type)) insideFunction.add(node);
    switch (node.type) {
      case "ExportAllDeclaration":
        report(node, "a device program is one file and cannot re-export another");
        break;
      case "ImportDeclaration": {
        const from = String((node.source as Tree).value);
        if (!IMPORTS.has(from)) report(node, importProblem(from));
        break;
      }
      case "ExportNamedDeclaration": {
        const from = node.source as Tree | null;
        if (from !== null) report(node, importProblem(String(from.value)));
        break;
      }
      case "ImportExpression":
        report(node, "import() reaches real I/O, which the virtual world does not have");
        break;
      case "MetaProperty":
        if (nameOf(node.meta as Tree) === "import") {
          report(node, "import.meta does not exist in the virtual world");
        }
        break;
      case "AwaitExpression":
        if (!insideFunction.has(node)) report(node, "await outside of a function");
        break;
      case "CallExpression":
      case "NewExpression":
        if (makesCode(node)) report(node, "code from a string reaches the real globals");
        break;
      case "Identifier":
        if (isBinding(parent, key)) declared.add(String(node.name));
        else if (isReference(parent, key)) used.push(node);
        break;
    }
  });
  for (const node of used) {
    const name = String(node.name);
    const reason = FORBIDDEN.get(name);
    if (reason !== undefined && !declared.has(name)) {
      report(
        node,
        `${name} reaches ${reason}; use what the agent gives (agent.now, agent.random, agent.every, agent.log), or world: live`,
      );
    }
  }
  const missing = missingExport(tree, file);
  if (missing !== null) problems.push(missing);
  return problems.sort((a, b) => a.line - b.line || a.column - b.column);
}

function importProblem(from: string): string {
  if (from.startsWith(".") || from.startsWith("/")) {
    return `a device program is one file: bundle ${from} into it, or use world: live`;
  }
  const what = from.startsWith("node:") ? "real I/O, time or randomness" : "a package";
  return `importing ${from} reaches ${what}, which the virtual world does not have; use world: live`;
}

/** Every name that the file mentions. */
function namesIn(tree: Tree): Set<string> {
  const names = new Set<string>();
  walk(tree, (node) => {
    if (node.type === "Identifier") names.add(String(node.name));
  });
  return names;
}

/** Whether it calls a constructor with a text: `(() => {}).constructor("return process")`. */
function makesCode({ callee, arguments: given }: Tree): boolean {
  const { type, property } = callee as Tree;
  return (
    type === "MemberExpression" &&
    nameOf(property as Tree) === "constructor" &&
    (given as Tree[]).some((one) => typeof one.value === "string" || one.type === "TemplateLiteral")
  );
}

/**
 * Whether an identifier declares a name. A name declared anywhere in the file counts everywhere:
 * shadowing is permitted.
 */
function isBinding(parent: Tree | null, key: string): boolean {
  if (parent === null) return false;
  if (parent.type === "VariableDeclarator") return key === "id";
  if (/Function|Class/.test(parent.type)) return key === "id" || key === "params";
  if (parent.type === "CatchClause") return key === "param";
  if (/^Import/.test(parent.type)) return key === "local";
  return false;
}

function isReference(parent: Tree | null, key: string): boolean {
  if (parent === null) return true;
  if (parent.type === "MemberExpression") return key === "object" || parent.computed === true;
  if (parent.type === "Property" || /Definition$/.test(parent.type)) {
    return key === "value" || parent.computed === true;
  }
  if (/^(Export|Import|Label|Break|Continue|MetaProp)/.test(parent.type)) return false;
  // A guard that checks whether a name exists gets an answer: it does not.
  return !(parent.type === "UnaryExpression" && parent.operator === "typeof");
}
