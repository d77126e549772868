/**
 * Pass: prefixes top-level names with `$`. They become globals of the board (boot.ts), where `D1`
 * is a pin and `E` the engine's own object.
 */
import { fullAncestor } from "acorn-walk";
import { declaredNames } from "./modules.ts";
import { applyChanges, type Change, parsePiece, type Tree } from "./piece.ts";

/** The boot code keeps the SDK itself as `$br`. */
const prefixOf = (name: string): string => (name === "br" ? "$$" : "$");

export const prefixGlobals = (code: string): string => {
  const program = parsePiece(code);
  const names = new Set(program.body.flatMap(declaredNames));
  const changes: Change[] = [];
  fullAncestor(program, (found, _state, ancestors) => {
    const node = found as Tree & { name: string };
    if (found.type !== "Identifier" || !names.has(node.name)) return;
    const parent = ancestors.at(-2) as Tree | undefined;
    if (parent?.type === "Property" && parent.shorthand) throw new Error("a shorthand property");
    changes.push({ start: node.start, end: node.start, text: prefixOf(node.name) });
  });
  for (const statement of program.body) {
    if (statement.type === "ClassDeclaration") {
      const { start, name } = statement.id;
      changes.push({ start, end: start, text: prefixOf(name) });
    }
  }
  // Some are visited twice.
  const unique = new Map(changes.map((change) => [change.start, change]));
  return applyChanges(code, [...unique.values()]);
};
