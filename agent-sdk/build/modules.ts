/**
 * Finds the portable modules that an entry needs and puts each after those it imports. Types are
 * erased on the way; nothing else changes.
 *
 * Two modules may not declare the same top-level name, and nothing may be imported under another
 * name, because the modules share one scope in the built file. Barrels (`index.ts`) are resolved:
 * only the modules whose names are imported are included.
 */
import { readFileSync } from "node:fs";
import { createRequire, stripTypeScriptTypes } from "node:module";
import { dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type ModuleDeclaration, type Program, parse, type Statement } from "acorn";

export interface Module {
  readonly path: string;
  /** The source, types included. */
  readonly source: string;
  /** The same without types; every character keeps its position. */
  readonly code: string;
  readonly body: Program["body"];
  /** Top-level names that it declares, exported or not. */
  readonly names: readonly string[];
}

const OPTIONS = { ecmaVersion: "latest", sourceType: "module" } as const;

/** The top-level names that a statement declares. */
export const declaredNames = (statement: Statement | ModuleDeclaration): string[] => {
  if (statement.type === "ExportNamedDeclaration") {
    return statement.declaration ? declaredNames(statement.declaration) : [];
  }
  if (statement.type === "ClassDeclaration" || statement.type === "FunctionDeclaration") {
    return [statement.id.name];
  }
  if (statement.type !== "VariableDeclaration") return [];
  return statement.declarations.map(({ id }) => {
    if (id.type !== "Identifier") throw new Error("Espruino has no destructuring");
    return id.name;
  });
};

/** By path: most builds have most modules in common. */
const modules = new Map<string, Module>();

const load = (path: string, source = readFileSync(path, "utf8")): Module => {
  const before = modules.get(path);
  if (before?.source === source) return before;
  const code = stripTypeScriptTypes(source);
  const { body } = parse(code, OPTIONS);
  const module = { path, source, code, body, names: body.flatMap(declaredNames) };
  modules.set(path, module);
  return module;
};

const locate = (specifier: string, from: string): string =>
  specifier.startsWith(".")
    ? resolve(dirname(from), specifier)
    : createRequire(pathToFileURL(from)).resolve(specifier);

const nameOf = (node: { type: string; name?: string }): string => {
  if (node.type !== "Identifier" || node.name === undefined)
    throw new Error("string names of exports are not for Espruino");
  return node.name;
};

/** The imported names of a statement and their source; null for any other statement. */
const importsOf = (statement: Statement | ModuleDeclaration): [string, string[]] | null => {
  if (statement.type !== "ImportDeclaration") return null;
  const names = statement.specifiers.map((part) => {
    if (part.type !== "ImportSpecifier" || nameOf(part.imported) !== part.local.name) {
      throw new Error("import names as they are: one scope holds them all");
    }
    return part.local.name;
  });
  return [String(statement.source.value), names];
};

/** The names that a module exports in `export { local as exported }`, as `[local, exported]`. */
export const listedExports = (module: Module): [string, string][] =>
  module.body
    .flatMap((statement) =>
      statement.type === "ExportNamedDeclaration" && !statement.source ? statement.specifiers : [],
    )
    .map(({ local, exported }) => [nameOf(local), nameOf(exported)]);

/**
 * Modules reachable from the entry, each after those it imports. `natives`: paths of modules whose
 * names replace the same names of any other module. `source`: of an entry that is no file.
 */
export const modulesInOrder = (
  entry: string,
  natives: readonly string[],
  source?: string,
): Module[] => {
  const loaded = new Map<string, Module>();
  const done = new Set<Module>();
  const open = new Set<Module>();

  const at = (path: string): Module => {
    const module = loaded.get(path) ?? load(path);
    loaded.set(path, module);
    return module;
  };

  /** The module that declares a name, found through re-exports. */
  const find = (name: string, path: string): Module | null => {
    const module = at(path);
    if (module.names.includes(name)) return module;
    for (const statement of module.body) {
      const isAll = statement.type === "ExportAllDeclaration";
      const isNamed =
        statement.type === "ExportNamedDeclaration" &&
        statement.source &&
        statement.specifiers.some((part) => nameOf(part.exported) === name);
      if (isAll || isNamed) {
        const found = find(name, locate(String(statement.source?.value), path));
        if (found) return found;
      }
    }
    return null;
  };

  const visit = (module: Module): void => {
    if (done.has(module)) return;
    if (open.has(module)) throw new Error(`modules import each other in a cycle: ${module.path}`);
    open.add(module);
    for (const statement of module.body) {
      const [specifier, names] = importsOf(statement) ?? ["", []];
      for (const name of names) {
        if (natives.some((path) => at(path).names.includes(name))) continue;
        const target = find(name, locate(specifier, module.path));
        if (!target) throw new Error(`${module.path}: nothing exports ${name} in ${specifier}`);
        visit(target);
      }
    }
    done.add(module);
  };

  for (const path of natives) visit(at(path));
  visit(source === undefined ? at(entry) : load(entry, source));
  return [...done];
};
