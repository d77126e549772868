/**
 * Arrows that use `this`, where Espruino would parse them without executing: its default debug
 * build fails an assertion there (jspeArrowFunction writes to a function that was not created). It
 * skips what is between braces, so braces make most of them safe.
 */
import { type Node, parse } from "acorn";
import { fullAncestor } from "acorn-walk";
import { applyChanges } from "./piece.ts";

type Any = Node & { [key: string]: never };
const as = <T>(node: unknown): T => node as T;

/** Why it is parsed unexecuted: the child of `parent` that contains it. */
interface Unexecuted {
  readonly parent: Node;
  readonly child: Node;
}

/** The parts of a node that are parsed but not always executed. */
const optionalParts = (parent: Node): (Node | null)[] => {
  const n = as<Record<string, Any>>(parent);
  switch (parent.type) {
    case "ArrowFunctionExpression":
      return [n.body as Node];
    case "IfStatement":
    case "ConditionalExpression":
      return [n.consequent as Node, n.alternate as Node];
    case "LogicalExpression":
      return [n.right as Node];
    case "ForStatement":
    case "ForInStatement":
    case "ForOfStatement":
    case "WhileStatement":
    case "DoWhileStatement":
      return [n.body as Node];
    case "SwitchCase":
      return as<{ consequent: Node[] }>(parent).consequent;
    default:
      return [];
  }
};

/** The outermost place that blocks each arrow with `this`; each place once. */
const unexecuted = (program: Node): Unexecuted[] => {
  const places = new Map<Node, Unexecuted>();
  fullAncestor(program, (node, _state, ancestors: Node[]) => {
    if (node.type !== "ThisExpression") return;
    let arrow = -1;
    for (let i = ancestors.length - 2; i >= 0; i--) {
      const { type } = ancestors[i] as Node;
      if (type === "ArrowFunctionExpression") arrow = i;
      if (type === "FunctionExpression" || type === "PropertyDefinition") break;
      // What contains the arrow, up to the nearest braces; then the arrow that those belong to.
      if (arrow === i) {
        let found: Unexecuted | null = null;
        for (let k = i - 1; k >= 0 && (ancestors[k] as Node).type !== "BlockStatement"; k--) {
          const [parent, child] = [ancestors[k] as Node, ancestors[k + 1] as Node];
          if (optionalParts(parent).includes(child)) found = { parent, child };
        }
        if (found !== null) places.set(found.child, found);
      }
    }
  });
  return [...places.values()];
};

const read = (code: string): Node => parse(code, { ecmaVersion: "latest", sourceType: "module" });

/** The code of every such place; empty if there is none. */
export const unexecutedArrows = (code: string): string[] =>
  unexecuted(read(code)).map(({ child }) => code.slice(child.start, child.end));

/** Puts braces around the statements and arrow bodies that need them. */
export const braceArrows = (code: string): string => {
  const changes = unexecuted(read(code)).flatMap(({ parent, child: { type, start, end } }) => {
    const isBody = parent.type === "ArrowFunctionExpression";
    if (!isBody && !type.endsWith("Statement")) return [];
    return [
      { start, end: start, text: isBody ? "{return " : "{" },
      { start: end, end, text: "}" },
    ];
  });
  // Nested arrows are reached one after the other, from the outermost on.
  return changes.length === 0 ? code : braceArrows(applyChanges(code, changes));
};
