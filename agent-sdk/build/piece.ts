/**
 * A module's code on its way into the built file, and how the passes change it: they examine the
 * syntax tree and replace ranges of text, so that everything else stays as it was written.
 */
import { type Node, type Program, parse } from "acorn";
import { fullAncestor } from "acorn-walk";

/** What `this` is called in a function that was a method (seldom.ts). */
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

/** Several passes look at the same text; more of them are kept than a build has pieces. */
const MAX_PARSED = 300;
const parsed = new Map<string, Program>();

/** The tree belongs to all callers: it is not to be changed. */
export const parsePiece = (code: string): Program => {
  let program = parsed.get(code);
  if (program === undefined) {
    if (parsed.size >= MAX_PARSED) parsed.clear();
    program = parse(code, { ecmaVersion: "latest", sourceType: "module" });
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

type Tree = Node & Record<string, unknown>;

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

/**
 * Replaces every use of the names in `texts`. Throws if a name is declared anywhere but at the top
 * level, because a use might mean that one.
 */
export const replaceNames = (piece: Piece, texts: ReadonlyMap<string, string>): Piece => {
  if (![...texts.keys()].some((name) => piece.code.includes(name))) return piece;
  const changes: Change[] = [];
  fullAncestor(parsePiece(piece.code), (found, _state, ancestors) => {
    const node = found as Tree & { name?: string };
    if (node.type !== "Identifier") return;
    const text = texts.get(node.name as string);
    if (text === undefined) return;
    const parent = ancestors.at(-2) as Tree | undefined;
    const role = roleOf(node, parent);
    if (role === "declares") {
      // Program, declaration, declarator, identifier.
      if (ancestors.length > 4) throw new Error(`${piece.path}: ${node.name} is declared twice`);
      return;
    }
    if (role === "word") return;
    const shorthand = parent?.type === "Property" && parent.shorthand;
    changes.push({
      start: node.start,
      end: node.end,
      text: shorthand ? `${node.name}: ${text}` : text,
    });
  });
  const unique = new Map(changes.map((change) => [change.start, change]));
  return { ...piece, code: applyChanges(piece.code, [...unique.values()]) };
};
