/**
 * Pass: replaces named numbers and short strings by their values. A top-level name costs a board
 * one variable of its few thousand for as long as the program runs; a literal costs none. In a
 * template they become part of its text.
 */
import type { Expression, Literal, TemplateLiteral } from "acorn";
import { full } from "acorn-walk";
import { applyChanges, type Change, type Piece, parsePiece, replaceNames } from "./piece.ts";

/** A longer string is created at each use, which costs more time than the variable saves. */
const MAX_TEXT = 16;

type Value = number | string;

/** The value of an initializer made of literals, known constants and arithmetic; else undefined. */
const constantOf = (node: Expression, known: ReadonlyMap<string, Value>): Value | undefined => {
  switch (node.type) {
    case "Literal":
      return typeof node.value === "number" || typeof node.value === "string"
        ? node.value
        : undefined;
    case "Identifier":
      return known.get(node.name);
    case "TemplateLiteral": {
      const values = node.expressions.map((part) => constantOf(part, known));
      if (!values.every((value) => typeof value === "string")) return undefined;
      return node.quasis.map(({ value }, i) => `${value.cooked}${values[i] ?? ""}`).join("");
    }
    case "BinaryExpression": {
      const left = constantOf(node.left as Expression, known);
      const right = constantOf(node.right, known);
      if (typeof left !== "number" || typeof right !== "number") return undefined;
      if (node.operator === "*") return left * right;
      if (node.operator === "+") return left + right;
      if (node.operator === "-") return left - right;
      return undefined;
    }
    case "UnaryExpression": {
      const value = constantOf(node.argument, known);
      return node.operator === "-" && typeof value === "number" ? -value : undefined;
    }
    default:
      return undefined;
  }
};

const isShort = (value: Value): boolean => typeof value === "number" || value.length <= MAX_TEXT;

/** Inlines strings that appear in a template as `${"…"}`. */
const foldTemplates = (piece: Piece): Piece => {
  const changes: Change[] = [];
  full(parsePiece(piece.code), (found) => {
    if (found.type !== "TemplateLiteral") return;
    const { expressions, quasis } = found as TemplateLiteral;
    for (const [i, part] of expressions.entries()) {
      const { value } = part as Literal;
      if (part.type !== "Literal" || typeof value !== "string") continue;
      const start = quasis[i]?.end ?? 0;
      const end = quasis[i + 1]?.start ?? 0;
      changes.push({ start, end, text: value.replace(/[`\\$]/g, "\\$&") });
    }
  });
  return { ...piece, code: applyChanges(piece.code, changes) };
};

/** Inlines all of them, and drops their declarations. `pieces`: each after its dependencies. */
export const inlineConstants = (pieces: readonly Piece[]): Piece[] => {
  const values = new Map<string, Value>();
  const kept = pieces.map((piece) => {
    const changes: Change[] = [];
    for (const statement of parsePiece(piece.code).body) {
      if (statement.type !== "VariableDeclaration" || statement.kind !== "const") continue;
      const { id, init } = statement.declarations[0] ?? {};
      if (id?.type !== "Identifier" || !init) continue;
      const value = constantOf(init, values);
      if (value === undefined || !isShort(value)) continue;
      values.set(id.name, value);
      changes.push({ start: statement.start, end: statement.end, text: "" });
    }
    return { ...piece, code: applyChanges(piece.code, changes) };
  });
  // In parentheses where a sign would merge with the preceding operator.
  const texts = new Map(
    [...values].map(([name, value]) => [
      name,
      typeof value === "number" && value < 0 ? `(${value})` : JSON.stringify(value),
    ]),
  );
  return kept.map((piece) => foldTemplates(replaceNames(piece, texts)));
};
