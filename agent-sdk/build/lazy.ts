/**
 * Pass: makes a module's functions and tables only while one of them is used. The module becomes
 * the body of one function; whoever uses a name of it calls that function, and what it made is let
 * go afterwards. At rest it costs a board 6 variables instead of some hundred. What nobody uses is
 * left out here, because esbuild looks for that at the top level only.
 *
 * Only for modules that keep no state and whose values nobody compares by identity.
 */
import { applyChanges, type Piece, parsePiece, replaceNames } from "./piece.ts";

/** The name of the function that makes the module of a path: `makeBootcount` for `bootcount.ts`. */
const makerOf = (path: string): string => {
  const words = (path.split("/").at(-1) as string).replace(/\.ts$/, "").split("-");
  return `make${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("")}`;
};

const usesAny = (piece: Piece, name: string): boolean =>
  replaceNames(piece, new Map([[name, `${name}_`]])).code !== piece.code;

/** The piece without declarations that are neither `offered` nor used in it. */
const dropUnused = (piece: Piece, offered: readonly string[]): Piece => {
  for (const statement of parsePiece(piece.code).body) {
    if (statement.type !== "VariableDeclaration") continue;
    const [declared] = statement.declarations;
    if (declared?.id.type !== "Identifier" || offered.includes(declared.id.name)) continue;
    const { start, end } = statement;
    const rest = { ...piece, code: applyChanges(piece.code, [{ start, end, text: "" }]) };
    if (!usesAny(rest, declared.id.name)) return dropUnused(rest, offered);
  }
  return piece;
};

/** Turns every piece for which `isLazy` holds into a function. */
export const makeLazy = (pieces: readonly Piece[], isLazy: (path: string) => boolean): Piece[] => {
  const uses = new Map<string, string>();
  const offered = new Map<Piece, string[]>();
  for (const piece of pieces) {
    if (!isLazy(piece.path)) continue;
    const others = pieces.filter((other) => other !== piece);
    const names = piece.exported.filter((name) => others.some((other) => usesAny(other, name)));
    offered.set(piece, names);
    for (const name of names) uses.set(name, `${makerOf(piece.path)}().${name}`);
  }
  return pieces.map((piece) => {
    const own = offered.get(piece);
    const foreign = new Map([...uses].filter(([name]) => !own?.includes(name)));
    if (!own) return replaceNames(piece, foreign);
    const replaced = replaceNames(dropUnused(piece, own), foreign);
    const returned = own.map((name) => `${name}: ${name}`).join(", ");
    return {
      ...replaced,
      code: `const ${makerOf(piece.path)} = () => {\n${replaced.code}\nreturn { ${returned} };\n};`,
    };
  });
};
