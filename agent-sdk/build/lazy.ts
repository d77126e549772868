/**
 * Pass: makes a module's functions and tables only while one of them is used. The module becomes
 * the body of one function; each use of a name of it calls that function, and the result is
 * released afterwards. At rest it costs a board 6 variables instead of some hundred. Unused names
 * are dropped here, because esbuild looks for them at the top level only.
 *
 * Only for modules that keep no state and whose values are never compared by identity.
 */
import { applyChanges, type Piece, parsePiece, replaceNames, usesOf } from "./piece.ts";

/** The name of the function that makes a module: `makeBootcount` for `bootcount.ts`. */
const makerOf = (path: string): string => {
  const words = (path.split("/").at(-1) as string).replace(/\.ts$/, "").split("-");
  return `make${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("")}`;
};

/** The piece without declarations that are neither `offered` nor used in it. */
const dropUnused = (piece: Piece, offered: readonly string[]): Piece => {
  for (const statement of parsePiece(piece.code).body) {
    if (statement.type !== "VariableDeclaration") continue;
    const [declared] = statement.declarations;
    if (declared?.id.type !== "Identifier" || offered.includes(declared.id.name)) continue;
    const { start, end } = statement;
    const uses = usesOf(piece, declared.id.name);
    if (uses.every((use) => use.start >= start && use.start < end)) {
      const rest = applyChanges(piece.code, [{ start, end, text: "" }]);
      return dropUnused({ ...piece, code: rest }, offered);
    }
  }
  return piece;
};

/** Merges pieces with the same name into one, at the position of the last. */
const merge = (pieces: readonly Piece[], nameOf: (path: string) => string | null): Piece[] => {
  const groups = new Map<string, Piece[]>();
  for (const piece of pieces) {
    const name = nameOf(piece.path) ?? piece.path;
    groups.set(name, [...(groups.get(name) ?? []), piece]);
  }
  return pieces.flatMap((piece) => {
    const name = nameOf(piece.path) ?? piece.path;
    const group = groups.get(name) as Piece[];
    if (group.at(-1) !== piece) return [];
    const exported = group.flatMap((one) => one.exported);
    return [{ path: name, exported, code: group.map(({ code }) => code).join("\n") }];
  });
};

/**
 * Turns pieces into functions. `nameOf` returns the path for the function that a piece becomes or
 * joins, or null for a piece that stays as it is.
 */
export const makeLazy = (
  separate: readonly Piece[],
  nameOf: (path: string) => string | null,
): Piece[] => {
  const pieces = merge(separate, nameOf);
  const made = new Set(separate.map(({ path }) => nameOf(path)));
  const isLazy = (path: string): boolean => made.has(path);
  const uses = new Map<string, string>();
  const offered = new Map<Piece, string[]>();
  for (const piece of pieces) {
    if (!isLazy(piece.path)) continue;
    const others = pieces.filter((other) => other !== piece);
    const names = piece.exported.filter((name) =>
      others.some((other) => usesOf(other, name).length > 0),
    );
    offered.set(piece, names);
    const only = names.length === 1;
    for (const name of names) uses.set(name, `${makerOf(piece.path)}()${only ? "" : `.${name}`}`);
  }
  return pieces.map((piece) => {
    const own = offered.get(piece);
    const foreign = new Map([...uses].filter(([name]) => !own?.includes(name)));
    if (!own) return replaceNames(piece, foreign);
    const replaced = replaceNames(dropUnused(piece, own), foreign);
    const members = own.map((name) => `${name}: ${name}`).join(", ");
    const returned = own.length === 1 ? own[0] : `{ ${members} }`;
    return {
      ...replaced,
      code: `const ${makerOf(piece.path)} = () => {\n${replaced.code}\nreturn ${returned};\n};`,
    };
  });
};
