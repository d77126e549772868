/** A program or an expression, as acorn parses it. */
import type { Node } from "acorn";

export type Tree = Node & Record<string, unknown>;

/** `key`: the member of its parent in which a node is. */
type Visit = (node: Tree, parent: Tree | null, key: string) => void;

/** Visits every node, each after its parent. */
export function walk(node: Tree, visit: Visit, parent: Tree | null = null, key = ""): void {
  visit(node, parent, key);
  for (const [name, value] of Object.entries(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof (child as Tree | null)?.type === "string") walk(child, visit, node, name);
    }
  }
}
