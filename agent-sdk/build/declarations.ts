/**
 * Joins consecutive declarations, `const a=1;const b=2;` to `const a=1,b=2;`: each saves bytes of a
 * board's flash.
 */
import type { Node } from "acorn";
import { full } from "acorn-walk";
import { applyChanges, type Change, parsePiece } from "./piece.ts";

interface Statement extends Node {
  readonly kind?: string;
}

/** `code`: as esbuild writes it, with one space after `const` and `let`. */
export const joinDeclarations = (code: string): string => {
  const changes: Change[] = [];
  full(parsePiece(code), (node) => {
    const { body } = node as unknown as { body?: readonly Statement[] };
    if (!Array.isArray(body)) return;
    body.forEach((statement: Statement, i) => {
      const next = body[i + 1] as Statement | undefined;
      if (statement.type !== "VariableDeclaration" || next?.type !== statement.type) return;
      if (next.kind !== statement.kind) return;
      const end = next.start + `${next.kind} `.length;
      changes.push({ start: statement.end - 1, end, text: "," });
    });
  });
  return applyChanges(code, changes);
};
