/**
 * Builds one file for Espruino from the portable modules: types are erased, modules concatenated in
 * dependency order, comments and whitespace dropped. Nothing is compiled: the device runs the code
 * as it is in src. For boards with few variables there are passes, each in its own file:
 * constants.ts, lazy.ts, inline.ts, members.ts, methods.ts and stored.ts. arrows.ts adds braces for
 * debug builds of Espruino, and tokens.ts converts the result to what a board's flash holds.
 */
import { transformSync } from "esbuild";
import { braceArrows } from "./arrows.ts";
import { inlineConstants } from "./constants.ts";
import { joinDeclarations } from "./declarations.ts";
import { prefixGlobals } from "./globals.ts";
import { inlineSmall } from "./inline.ts";
import { makeLazy } from "./lazy.ts";
import { dropUnusedMethods, freeMethods, shortenNames } from "./members.ts";
import { fieldsToConstructors } from "./methods.ts";
import { declaredNames, listedExports, type Module, modulesInOrder } from "./modules.ts";
import type { Piece } from "./piece.ts";
import { functionNames, markStored, storeFunctions, unmarked } from "./stored.ts";
import { tokenise } from "./tokens.ts";

/** The part of the file that one module takes. */
export interface Part {
  /** The path of the module, or of the first of those that are made together (lazy.ts). */
  readonly path: string;
  /** Bytes in `stored`. */
  readonly bytes: number;
}

export interface Bundle {
  /** The built file as JavaScript. */
  readonly code: string;
  /** The same in the form that a board's Storage holds (tokens.ts): a byte string. */
  readonly stored: string;
  /** In order. Their sum is the length of `stored` without the exports and the last newline. */
  readonly parts: readonly Part[];
  /** Paths of its modules that are files, in order. */
  readonly modules: readonly string[];
  /** Names of functions that `code` may use before it defines them (stored.ts). */
  readonly late: readonly string[];
}

export interface BundleOptions {
  /** Modules whose names replace the same names of any other module. */
  readonly natives: readonly string[];
  /**
   * Ends of the paths of modules that are made only while they are used (lazy.ts); those of one row
   * are made together.
   */
  readonly lazy: readonly (string | readonly string[])[];
  /**
   * Whether functions stay in Storage (stored.ts): in the file of this name, and which ones do not.
   */
  readonly stored: { readonly file: string; readonly resident: readonly string[] } | null;
  /** Whether small functions are inlined (inline.ts). */
  readonly inline: boolean;
  /** Whether its top level may become the board's top level (globals.ts). */
  readonly global: boolean;
  /** Names of methods and properties that a device program may use. */
  readonly keep: readonly string[];
  /** Names of properties that stay within the file: in no message, stored file or built-in. */
  readonly ours: readonly string[];
}

const WITHOUT: BundleOptions = {
  natives: [],
  lazy: [],
  stored: null,
  inline: false,
  global: false,
  keep: [],
  ours: [],
};

/** Marks each piece until all passes are done, so that its part of the file is known. */
const MARK = "endOfPiece";
const MARKS = new RegExp(`${MARK}\\(\\d+\\);`);

/** The name for a device program's `export default`. */
const PROGRAM = "deviceProgram";

/** What remains of a module: no imports, no `export`, and nothing that a native replaces. */
const bare = (module: Module, replaced: ReadonlySet<string>): Piece => {
  const code = module.body
    .filter(({ type }) => type !== "ImportDeclaration" && type !== "ExportAllDeclaration")
    .filter((statement) => !declaredNames(statement).some((name) => replaced.has(name)))
    .map((statement) => {
      const { start, end } =
        statement.type === "ExportNamedDeclaration" || statement.type === "ExportDefaultDeclaration"
          ? (statement.declaration ?? { start: 0, end: 0 })
          : statement;
      const text = module.code.slice(start, end);
      return statement.type === "ExportDefaultDeclaration" ? `const ${PROGRAM} = ${text};` : text;
    })
    .join("\n");
  const exported = module.body.flatMap((statement) =>
    statement.type === "ExportNamedDeclaration" ? declaredNames(statement) : [],
  );
  return { path: module.path, exported, code };
};

/**
 * Shortens names inside functions, and drops unused code, whitespace and comments. esbuild does no
 * more than that here: with its syntax rewriting on, its output does not run on Espruino.
 */
const squeeze = (code: string): string => {
  const options = { minifyWhitespace: true, minifyIdentifiers: true, treeShaking: true } as const;
  return transformSync(code, { ...options, format: "esm", target: "es2022", charset: "ascii" })
    .code;
};

/** Writes `export{a as start}` as the assignments that Espruino's modules need. */
const toExports = (code: string): string =>
  code.replace(/export\{([^}]*)\};?\s*$/, (_all, list: string) =>
    list
      .split(",")
      .map((part) => part.split(" as "))
      .map(([local, exported]) => `exports.${exported ?? local}=${local};`)
      .join(""),
  );

const checkNames = (modules: readonly Module[], natives: readonly string[]): void => {
  const owner = new Map<string, string>();
  for (const { path, names } of modules) {
    for (const name of names) {
      const other = owner.get(name);
      if (other && !natives.includes(other))
        throw new Error(`${name} is declared in ${other} and in ${path}`);
      if (!other) owner.set(name, path);
    }
  }
};

/**
 * Builds the file from `entry`, the path of a portable module; the file has its exports. `source`:
 * of an entry that is no file.
 */
export const bundle = (
  entry: string,
  options: BundleOptions = WITHOUT,
  source?: string,
): Bundle => {
  const modules = modulesInOrder(entry, options.natives, source);
  checkNames(modules, options.natives);
  const isNative = ({ path }: Module): boolean => options.natives.includes(path);
  const replaced = new Set(modules.filter(isNative).flatMap(({ names }) => names));

  let pieces = modules.map((module) => bare(module, isNative(module) ? new Set() : replaced));
  pieces = inlineConstants(pieces);
  pieces = makeLazy(pieces, (path) => {
    const ends = options.lazy.map((row) => (typeof row === "string" ? [row] : row));
    const row = ends.find((some) => some.some((end) => path.endsWith(end)));
    return row?.[0] ?? null;
  });
  const entered = modules.at(-1) as Module;
  const exported = [
    ...listedExports(entered).map((pair) => pair.join(" as ")),
    ...(pieces.at(-1) as Piece).exported,
    ...entered.body.flatMap(({ type }) =>
      type === "ExportDefaultDeclaration" ? [`${PROGRAM} as program`] : [],
    ),
  ];
  const marked = pieces.map((piece, i) => `${piece.code}\n${MARK}(${i});`);
  let code = `${marked.join("\n")}\nexport {${exported.join(",")}};`;
  const keep = new Set(options.keep);
  if (options.inline) code = inlineSmall(code);
  code = dropUnusedMethods(code, keep);
  const sources = modules.map(({ source }) => source);
  const ours = new Set(options.ours);
  if (options.stored) code = fieldsToConstructors(freeMethods(code, modules, keep, ours));
  code = shortenNames(code, sources, keep, ours);
  if (options.stored) code = markStored(code, new Set(options.stored.resident));
  const squeezed = joinDeclarations(
    braceArrows(toExports(squeeze(code).replaceAll("/* @__PURE__ */ ", ""))),
  );
  const whole = `${options.global ? prefixGlobals(squeezed) : squeezed}\n`;
  const stretches = whole.split(MARKS);
  const file = options.stored?.file;
  const { stored, bytes } =
    file === undefined
      ? {
          stored: stretches.map(tokenise).join(""),
          bytes: stretches.map((part) => tokenise(part).length),
        }
      : storeFunctions(stretches, file);
  return {
    code: unmarked(stretches.join("")),
    stored,
    parts: pieces.map(({ path }, i) => ({ path, bytes: bytes[i] ?? 0 })),
    modules: modules
      .map(({ path }) => path)
      .filter((path) => source === undefined || path !== entry),
    late: options.stored ? functionNames(stretches.join("")) : [],
  };
};
