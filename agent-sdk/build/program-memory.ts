/**
 * Estimates how many variables of a board an agent takes, from a program's source. What the SDK
 * takes are its budgets; what a program takes is counted in the layout of a 32-bit engine.
 */
import { type Node, parse } from "acorn";
import type { BoardMemory } from "../src/board/dialect.ts";
import { BOARDS } from "./boards.ts";
import budgets from "./budgets.json" with { type: "json" };

/** Of a module that exports an empty function. */
const MODULE = 5;
/** Of a function's scope, which stays if a function in it does. */
const SCOPE = 11;
const FUNCTION = 7;
/** A name has this many characters in its own variable, and this many in each further one. */
const NAME_CHARACTERS = 4;
const MORE_CHARACTERS = 10;
/** A longer text stays in flash, and only a reference to it in memory. */
const MAX_TEXT = 4;
/** What the UART's way takes more than a WebSocket, at most (docs/espruino.md). */
const BRIDGED = 75;

interface Syntax extends Node {
  readonly body: unknown;
  readonly id: Node | null;
  readonly key: Node;
  readonly value: unknown;
  readonly name: string;
  readonly params: readonly Node[];
  readonly kind: string;
}

const isNode = (value: unknown): value is Syntax =>
  typeof (value as Partial<Node> | null)?.type === "string";

const childrenOf = (node: Node): Syntax[] => Object.values(node).flat().filter(isNode);

const named = (characters: number): number =>
  1 + Math.ceil(Math.max(0, characters - NAME_CHARACTERS) / MORE_CHARACTERS);

const isFunction = ({ type }: Node): boolean =>
  type === "FunctionExpression" || type === "ArrowFunctionExpression";

const lengthOf = (node: Node): number => {
  const { name, value } = node as Syntax;
  return String(name ?? value ?? "").length;
};

/** Of a value that stays, and everything within. Functions are entered only by being called. */
const variablesOf = (node: Syntax): number => {
  const within = (): number => childrenOf(node).reduce((sum, child) => sum + variablesOf(child), 0);
  if (isFunction(node))
    return node.params.reduce((sum, name) => sum + named(lengthOf(name)), FUNCTION);
  switch (node.type) {
    case "Literal": // integers, true and null are in the variable of their name
      if (typeof node.value === "string") return Math.min(named(node.value.length), MAX_TEXT);
      return typeof node.value === "number" && !Number.isInteger(node.value) ? 1 : 0;
    case "VariableDeclarator":
      return named(lengthOf(node.id as Node)) + within();
    case "Property":
      return named(lengthOf(node.key)) + variablesOf(node.value as Syntax);
    case "ObjectExpression":
      return 1 + within();
    case "ArrayExpression": // each element has a name, its number
      return 1 + childrenOf(node).length + within();
    case "MethodDefinition":
      return named(lengthOf(node.key)) + variablesOf(node.value as Syntax);
    case "ClassDeclaration":
    case "ClassExpression":
      return FUNCTION + 1 + within();
    default:
      return within();
  }
};

/** Of a program that can be read, once it has run. */
export const programVariables = (code: string): number => {
  const program = parse(code, { ecmaVersion: "latest", sourceType: "module" });
  let total = MODULE;
  for (const statement of program.body as Syntax[]) {
    const start = (statement as Node & { declaration?: Syntax }).declaration ?? statement;
    if (statement.type !== "ExportDefaultDeclaration") total += variablesOf(start);
    else if (isNode(start.body)) {
      const inner = variablesOf(start.body);
      if (inner > 0) total += SCOPE + inner;
    } else total += variablesOf(start);
  }
  return total;
};

/** `name`: of one of BOARDS; null if it is none. */
export const estimateMemory = (code: string, name: string): BoardMemory | null => {
  const board = BOARDS.find((known) => known.name === name);
  if (board === undefined) return null;
  const { online, peak } = budgets.espruino.variables32;
  const program = programVariables(code);
  const used = online + (board.isBridged ? BRIDGED : 0) + program;
  const call = peak - online;
  const { variables } = board;
  return { board: board.name, variables, used, program, call, fits: used + call <= variables };
};
