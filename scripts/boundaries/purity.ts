/**
 * Where a program is impure: every use of a global that reads a clock, randomness or the
 * environment, and everything that waits. A local variable with the name of such a global does not
 * count.
 */
import type { Node, Program } from "acorn";
import { ancestor } from "acorn-walk";
import { lineOf } from "./graph.ts";

interface Impurity {
  line: number;
  what: string;
}

/** Nodes as data; acorn's own union is no help to code that looks at every kind. */
interface AnyNode extends Node {
  [key: string]: unknown;
}

export function findImpurities(program: Program, globals: ReadonlySet<string>): Impurity[] {
  const found: Impurity[] = [];
  const names = new Map<Node, Set<string>>();
  const add = (node: Node, what: string) => found.push({ line: lineOf(node), what });

  const isLocal = (name: string, ancestors: Node[]): boolean =>
    ancestors.some((scope) => {
      let own = names.get(scope);
      if (!own) {
        own = namesOf(scope as AnyNode);
        names.set(scope, own);
      }
      return own.has(name);
    });

  const onFunction = (node: Node) => {
    if ((node as AnyNode).async) add(node, "an async function");
  };

  ancestor(program, {
    Identifier(node, _state, ancestors) {
      if (isLocal(node.name, ancestors)) return;
      const parent = ancestors.at(-2) as AnyNode | undefined;
      if (globals.has(node.name) && !isGivenDate(parent, node)) {
        add(node, `the global ${node.name}`);
      }
      if (node.name === "Math") {
        const use = mathUse(parent, node);
        if (use) add(node, use);
      }
    },
    // `{ Date } = …` and `Date = …` write to a global, which is no better than reading it.
    VariablePattern(node: Node, _state: unknown, ancestors: Node[]) {
      const { name } = node as AnyNode as unknown as { name: string };
      if (globals.has(name) && !isLocal(name, ancestors)) add(node, `the global ${name}`);
    },
    MetaProperty(node) {
      if (node.meta.name === "import") add(node, "import.meta");
    },
    ImportExpression: (node) => add(node, "import(), which waits"),
    AwaitExpression: (node) => add(node, "await"),
    ForOfStatement(node) {
      if (node.await) add(node, "for await");
    },
    FunctionDeclaration: onFunction,
    FunctionExpression: onFunction,
    ArrowFunctionExpression: onFunction,
  } as Parameters<typeof ancestor>[1]);
  return found.sort((a, b) => a.line - b.line);
}

/** `new Date(atMs)` only converts a given time and reads no clock. */
function isGivenDate(parent: AnyNode | undefined, node: { name: string } & Node): boolean {
  if (node.name !== "Date" || parent?.type !== "NewExpression" || parent.callee !== node)
    return false;
  const [first] = parent.arguments as AnyNode[];
  return first !== undefined && first.type !== "SpreadElement";
}

/** `Math` is arithmetic apart from `random`; as a value, any member might be read from it later. */
function mathUse(parent: AnyNode | undefined, node: Node): string | undefined {
  if (parent?.type !== "MemberExpression" || parent.object !== node) return "Math held as a value";
  const property = parent.property as AnyNode;
  const name = parent.computed ? property.value : property.name;
  if (typeof name !== "string") return "Math with a computed member";
  return name === "random" ? "Math.random" : undefined;
}

/** The names that a node introduces as a scope. */
function namesOf(scope: AnyNode): Set<string> {
  const names = new Set<string>();
  const addPattern = (pattern: AnyNode | null | undefined): void => {
    if (!pattern) return;
    if (pattern.type === "Identifier") names.add(pattern.name as string);
    else if (pattern.type === "ObjectPattern")
      for (const p of pattern.properties as AnyNode[])
        addPattern((p.type === "Property" ? p.value : p.argument) as AnyNode);
    else if (pattern.type === "ArrayPattern")
      for (const e of pattern.elements as (AnyNode | null)[]) addPattern(e);
    else if (pattern.type === "AssignmentPattern") addPattern(pattern.left as AnyNode);
    else if (pattern.type === "RestElement") addPattern(pattern.argument as AnyNode);
  };
  const addStatement = (statement: AnyNode): void => {
    switch (statement.type) {
      case "VariableDeclaration":
        for (const d of statement.declarations as AnyNode[]) addPattern(d.id as AnyNode);
        break;
      case "FunctionDeclaration":
      case "ClassDeclaration":
        addPattern(statement.id as AnyNode | null);
        break;
      case "ImportDeclaration":
        for (const s of statement.specifiers as AnyNode[]) addPattern(s.local as AnyNode);
        break;
      case "ExportNamedDeclaration":
      case "ExportDefaultDeclaration":
        if (statement.declaration) addStatement(statement.declaration as AnyNode);
        break;
    }
  };
  switch (scope.type) {
    case "Program":
    case "BlockStatement":
    case "StaticBlock":
      for (const s of scope.body as AnyNode[]) addStatement(s);
      break;
    case "SwitchStatement":
      for (const c of scope.cases as AnyNode[])
        for (const s of c.consequent as AnyNode[]) addStatement(s);
      break;
    case "ForStatement":
      if (scope.init) addStatement(scope.init as AnyNode);
      break;
    case "ForInStatement":
    case "ForOfStatement":
      addStatement(scope.left as AnyNode);
      break;
    case "CatchClause":
      addPattern(scope.param as AnyNode | null);
      break;
    case "FunctionExpression":
    case "FunctionDeclaration":
    case "ArrowFunctionExpression":
      addPattern(scope.id as AnyNode | null);
      for (const p of scope.params as AnyNode[]) addPattern(p);
      break;
    case "ClassExpression":
      addPattern(scope.id as AnyNode | null);
      break;
  }
  return names;
}
