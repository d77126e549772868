/**
 * Makes one file for Espruino out of the portable modules: types are erased, modules concatenated
 * in dependency order, comments and blanks dropped. Nothing is compiled: what one reads in src is
 * what the device runs. Where variables are scarce four passes help, each in its own file:
 * constants.ts, lazy.ts, inline.ts and members.ts.
 */
import { transformSync } from "esbuild";
import { inlineConstants } from "./constants.ts";
import { inlineSmall } from "./inline.ts";
import { makeLazy } from "./lazy.ts";
import { dropUnusedMethods, shortenNames } from "./members.ts";
import { declaredNames, listedExports, type Module, modulesInOrder } from "./modules.ts";
import type { Piece } from "./piece.ts";

export interface Bundle {
  /** The built file. */
  readonly code: string;
  /** Paths of the modules in it, in order. */
  readonly modules: readonly string[];
}

export interface BundleOptions {
  /** A module whose names are taken in place of the same names of any other; null for none. */
  readonly natives: string | null;
  /**
   * Ends of the paths of modules that are made only while they are used (lazy.ts); those of a row
   * are made together.
   */
  readonly lazy: readonly (string | readonly string[])[];
  /** Whether small functions are written out where they are called (inline.ts). */
  readonly inline: boolean;
  /** Names of methods and properties that a device program may use. */
  readonly keep: readonly string[];
}

const WITHOUT: BundleOptions = { natives: null, lazy: [], inline: false, keep: [] };

/** What a device program's `export default` becomes. */
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
 * Names inside functions made short, what nobody uses left out, blanks and comments dropped.
 * esbuild does no more than that here: with its syntax rewriting on, its output does not run on
 * Espruino.
 */
const squeeze = (code: string): string => {
  const options = { minifyWhitespace: true, minifyIdentifiers: true, treeShaking: true } as const;
  return transformSync(code, { ...options, format: "esm", target: "es2022", charset: "ascii" })
    .code;
};

/** `export{a as start}` as the assignments that Espruino's modules want. */
const toExports = (code: string): string =>
  code.replace(/export\{([^}]*)\};?\s*$/, (_all, list: string) =>
    list
      .split(",")
      .map((part) => part.split(" as "))
      .map(([local, exported]) => `exports.${exported ?? local}=${local};`)
      .join(""),
  );

const checkNames = (modules: readonly Module[], natives: string | null): void => {
  const owner = new Map<string, string>();
  for (const { path, names } of modules) {
    for (const name of names) {
      const other = owner.get(name);
      if (other && other !== natives)
        throw new Error(`${name} is declared in ${other} and in ${path}`);
      if (!other) owner.set(name, path);
    }
  }
};

/**
 * Builds the file from `entry`, the path of a portable module; its exports are those of the file.
 */
export const bundle = (entry: string, options: BundleOptions = WITHOUT): Bundle => {
  const modules = modulesInOrder(entry, options.natives);
  checkNames(modules, options.natives);
  const natives = modules.find(({ path }) => path === options.natives);
  const replaced = new Set(natives?.names);

  let pieces = modules.map((module) => bare(module, module === natives ? new Set() : replaced));
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
  let code = `${pieces.map((piece) => piece.code).join("\n")}\nexport {${exported.join(",")}};`;
  const keep = new Set(options.keep);
  if (options.inline) code = inlineSmall(code);
  code = dropUnusedMethods(code, keep);
  code = shortenNames(
    code,
    modules.map(({ source }) => source),
    keep,
  );
  return { code: `${toExports(squeeze(code))}\n`, modules: modules.map(({ path }) => path) };
};
