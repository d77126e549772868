/**
 * A module's code on its way into the built file, and how the passes change it: they examine the
 * syntax tree and replace ranges of text, so that everything else stays as it was written.
 */
import { type Node, type Program, parse } from "acorn";
import { fullAncestor } from "acorn-walk";

/** What `this` is called in a function that was a method (methods.ts). */
export const THIS = "thisObject";

export interface Piece {
  /** The path of its module. */
  readonly path: string;
  /** Names that other modules may use. */
  readonly exported: readonly string[];
  readonly code: string;
}

export interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Characters; a longer text is a whole program, which only its own build looks at. */
const MAX_MODULE = 40_000;
/** Several passes, and the builds of several files, look at the same module. */
const MAX_PARSED = 2000;
const parsed = new Map<string, Program>();
let latest: { readonly code: string; readonly program: Program } | null = null;

/** The tree belongs to all callers: it is not to be changed. */
export const parsePiece = (code: string): Program => {
  const known = latest?.code === code ? latest.program : parsed.get(code);
  if (known !== undefined) return known;
  const program = parse(code, { ecmaVersion: "latest", sourceType: "module" });
  if (code.length > MAX_MODULE) latest = { code, program };
  else {
    if (parsed.size >= MAX_PARSED) parsed.clear();
    parsed.set(code, program);
  }
  return program;
};

/** The code with all changes made; they may not overlap. */
export const applyChanges = (code: string, changes: readonly Change[]): string => {
  let text = "";
  let at = 0;
  for (const { start, end, text: put } of [...changes].sort((a, b) => a.start - b.start)) {
    if (start < at) throw new Error("changes overlap");
    text += code.slice(at, start) + put;
    at = end;
  }
  return text + code.slice(at);
};

export type Tree = Node & Record<string, unknown>;
export type Named = Node & { name: string };

/**
 * How its parent uses an identifier: as a name that is looked up, one that is declared, or a mere
 * word.
 */
const roleOf = (node: Tree, parent: Tree | undefined): "use" | "declares" | "word" => {
  switch (parent?.type) {
    case "MemberExpression":
      return parent.property === node && !parent.computed ? "word" : "use";
    case "Property":
    case "MethodDefinition":
    case "PropertyDefinition":
      return parent.key === node && !parent.computed && parent.value !== node ? "word" : "use";
    case "VariableDeclarator":
      return parent.id === node ? "declares" : "use";
    case "ClassDeclaration":
      return parent.id === node ? "declares" : "use";
    case "ArrowFunctionExpression":
    case "FunctionExpression":
      return parent.body === node ? "use" : "declares";
    case "CatchClause":
      return parent.param === node ? "declares" : "use";
    case "ExportSpecifier":
      return "word";
    default:
      return "use";
  }
};

interface Identifier {
  readonly start: number;
  readonly end: number;
  /** Null: a declaration at the top level. */
  readonly role: "use" | "shorthand" | "declared below the top level" | null;
}

const identifiers = new WeakMap<Program, ReadonlyMap<string, readonly Identifier[]>>();

/** All identifiers that are more than words, by their names. */
const identifiersOf = (code: string): ReadonlyMap<string, readonly Identifier[]> => {
  const program = parsePiece(code);
  const known = identifiers.get(program);
  if (known !== undefined) return known;
  // By their places, because the walk comes to both sides of a shorthand.
  const found = new Map<string, Map<number, Identifier>>();
  fullAncestor(program, (any, _state, ancestors) => {
    if (any.type !== "Identifier") return;
    const node = any as Tree & { name: string };
    const parent = ancestors.at(-2) as Tree | undefined;
    const role = roleOf(node, parent);
    if (role === "word") return;
    const { start, end, name } = node;
    const isShorthand = parent?.type === "Property" && parent.shorthand === true;
    // Program, declaration, declarator, identifier.
    const declared = ancestors.length > 4 ? ("declared below the top level" as const) : null;
    const own = found.get(name) ?? new Map<number, Identifier>();
    found.set(name, own);
    own.set(start, {
      start,
      end,
      role: role === "declares" ? declared : isShorthand ? "shorthand" : "use",
    });
  });
  const all = new Map([...found].map(([name, own]) => [name, [...own.values()]]));
  identifiers.set(program, all);
  return all;
};

/**
 * Where a name is used that is declared at the top level of this or another piece. Throws if it is
 * declared anywhere else, because a use might mean that one.
 */
export const usesOf = (piece: Piece, name: string): readonly Identifier[] => {
  if (!piece.code.includes(name)) return [];
  const all = identifiersOf(piece.code).get(name) ?? [];
  if (all.some(({ role }) => role === "declared below the top level")) {
    throw new Error(`${piece.path}: ${name} is declared twice`);
  }
  return all.filter(({ role }) => role !== null);
};

/** Replaces every use of the names in `texts`. Throws as `usesOf`. */
export const replaceNames = (piece: Piece, texts: ReadonlyMap<string, string>): Piece => {
  const changes = [...texts].flatMap(([name, text]) =>
    usesOf(piece, name).map(({ start, end, role }) => ({
      start,
      end,
      text: role === "shorthand" ? `${name}: ${text}` : text,
    })),
  );
  return changes.length === 0 ? piece : { ...piece, code: applyChanges(piece.code, changes) };
};
