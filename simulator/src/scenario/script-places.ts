/**
 * The positions of a scenario's parts in a TypeScript or JavaScript file, if it writes them as
 * literals.
 */
import { stripTypeScriptTypes } from "node:module";
import { parse } from "acorn";
import type { Place } from "./check.ts";
import type { Tree as Any } from "./tree.ts";

const START = { line: 1, column: 1 };

export function literalPlaces(source: string): Place {
  let root: Any | null = null;
  try {
    const tree = parse(stripTypeScriptTypes(source), {
      ecmaVersion: "latest",
      sourceType: "module",
      locations: true,
    }) as unknown as { body: Any[] };
    const exported = tree.body.find(({ type }) => type === "ExportDefaultDeclaration");
    let value = exported?.declaration as Any | undefined;
    if (value?.type === "CallExpression") value = (value.arguments as Any[])[0];
    if (value?.type === "Identifier") value = declared(tree.body, value.name as string);
    root = value ?? null;
  } catch {
    // Positions are lost; the problems are still reported.
  }
  return (path, part) => {
    let node = root;
    for (const [depth, step] of path.entries()) {
      const next =
        node === null ? null : child(node, step, part === "key" && depth === path.length - 1);
      if (next === null) break;
      node = next;
    }
    const start = (node?.loc as { start: { line: number; column: number } } | undefined)?.start;
    return start === undefined ? START : { line: start.line, column: start.column + 1 };
  };
}

function declared(body: Any[], name: string): Any | undefined {
  for (const statement of body) {
    if (statement.type !== "VariableDeclaration") continue;
    for (const { id, init } of statement.declarations as { id: Any; init: Any | null }[]) {
      if (id.name !== name || init === null) continue;
      return init.type === "CallExpression" ? (init.arguments as Any[])[0] : init;
    }
  }
  return undefined;
}

function child(node: Any, step: string | number, wantsKey: boolean): Any | null {
  if (typeof step === "number") {
    return node.type === "ArrayExpression" ? ((node.elements as Any[])[step] ?? null) : null;
  }
  if (node.type !== "ObjectExpression") return null;
  for (const property of node.properties as Any[]) {
    const key = property.key as Any | undefined;
    if (key !== undefined && (key.name ?? key.value) === step) {
      return wantsKey ? key : (property.value as Any);
    }
  }
  return null;
}
