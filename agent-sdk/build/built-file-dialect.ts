/**
 * What the *built* Espruino file may contain: an allow-list made from probes of the real engine
 * (Espruino 2v29), because that engine runs much unsupported code wrongly and without an error.
 * docs/espruino.md lists the measurements. The test beside this file has a failing example of each
 * rule.
 */
import { type Node, parse } from "acorn";
import { base, full } from "acorn-walk";

export interface Finding {
  readonly rule: string;
  readonly line: number;
  readonly column: number;
  readonly text: string;
}

/**
 * Syntax that Espruino runs. Everything else is refused, including what later versions of the
 * language add.
 */
const SYNTAX = new Set(
  `Program ExpressionStatement BlockStatement EmptyStatement ReturnStatement IfStatement
  SwitchStatement SwitchCase ThrowStatement TryStatement CatchClause WhileStatement DoWhileStatement
  ForStatement ForOfStatement ForInStatement BreakStatement ContinueStatement VariableDeclaration
  VariableDeclarator FunctionExpression ArrowFunctionExpression ClassDeclaration ClassExpression
  ClassBody MethodDefinition PropertyDefinition Identifier Literal TemplateLiteral TemplateElement
  ThisExpression Super ArrayExpression ObjectExpression Property UnaryExpression UpdateExpression
  BinaryExpression LogicalExpression AssignmentExpression ConditionalExpression CallExpression
  NewExpression MemberExpression SequenceExpression ParenthesizedExpression`.split(/\s+/),
);

/** Globals, and those of their members that exist there and behave as specified. */
const GLOBALS: { readonly [name: string]: readonly string[] | "any" } = {
  exports: "any",
  require: [],
  undefined: [],
  NaN: [],
  Infinity: [],
  isNaN: [],
  isFinite: [],
  parseInt: [],
  parseFloat: [],
  String: ["fromCharCode"],
  Number: [],
  Boolean: [],
  Object: ["keys", "assign", "create", "prototype", "defineProperty"],
  Array: ["isArray"],
  Math: ["floor", "ceil", "round", "min", "max", "abs", "pow", "sign", "sqrt"],
  JSON: ["parse", "stringify"],
  Promise: ["resolve", "reject", "all"],
  Error: [],
  TypeError: [],
  ArrayBuffer: [],
  DataView: [],
  Uint8Array: [],
  Int32Array: [],
  Uint32Array: [],
  Float64Array: [],
  setTimeout: [],
  clearTimeout: [],
  setInterval: [],
  clearInterval: [],
  btoa: [],
  process: ["memory", "env", "version", "on"],
  E: "any",
  console: ["log"],
  getTime: [],
  getSerial: [],
  load: [],
  // By a configured name, such as "Serial1"; ESP32 is undefined on other boards.
  global: ["ESP32"],
};

/** Members that are missing there, or behave differently, such as `slice` of a typed array. */
const MEMBERS = new Set(
  `flat flatMap at codePointAt finally from of imul trunc log2 clz32 freeze isInteger
  MAX_SAFE_INTEGER matchAll replaceAll localeCompare normalize race any allSettled description
  slice BYTES_PER_ELEMENT __proto__ constructor caller callee`.split(/\s+/),
);

const OPERATORS = new Set(["**", "**=", "??=", "||=", "&&="]);

type Scope = { readonly names: Map<string, number>; readonly loop: boolean };

type Any = Node & { [key: string]: never };
const as = <T>(node: unknown): T => node as T;

const isFunction = (node: Node): boolean =>
  node.type === "ArrowFunctionExpression" || node.type === "FunctionExpression";

/** Fields are on the prototype there, so only immutable values may be shared. */
const isPlainValue = (node: Node): boolean =>
  node.type === "Literal" ||
  (node.type === "UnaryExpression" && isPlainValue(as<{ argument: Node }>(node).argument)) ||
  // The form in which decimals.ts writes 0.5.
  (node.type === "BinaryExpression" &&
    isPlainValue(as<{ left: Node }>(node).left) &&
    isPlainValue(as<{ right: Node }>(node).right));

const checkPrivate = (key: Node, report: (rule: string, node: Node) => void): void => {
  if (key.type === "PrivateIdentifier") report("syntax: PrivateIdentifier", key);
};

/** Rules that examine one node at a time. */
const checkNode = (node: Any, report: (rule: string, node: Node) => void): void => {
  const n = as<Record<string, never>>(node);
  if (!SYNTAX.has(node.type)) report(`syntax: ${node.type}`, node);
  if (n.async || n.generator) report("async or generator function", node);
  if (n.await) report("for await", node);
  switch (node.type) {
    case "Literal": {
      const literal = as<{ bigint?: string; regex?: { pattern: string } }>(node);
      if (literal.bigint) report("BigInt", node);
      const pattern = literal.regex?.pattern.replace(/\\./g, "") ?? "";
      if (/[{]|\(\?|\[[^\]]*[[/]|\([^)]*\|/.test(pattern))
        report("regex with {n}, (?, [ or / in a set, or | in a group", node);
      break;
    }
    case "Property":
    case "MethodDefinition":
      if (n.computed) report("computed key", node);
      checkPrivate(as<{ key: Node }>(node).key, report);
      break;
    case "PropertyDefinition": {
      const field = as<{ key: Node; value: Node | null; computed: boolean }>(node);
      checkPrivate(field.key, report);
      if (field.computed) report("computed key", node);
      if (!field.value) report("class field without a value", node);
      else if (!isPlainValue(field.value)) report("class field that all objects would share", node);
      break;
    }
    case "VariableDeclaration":
      if (as<{ kind: string }>(node).kind === "var") report("var", node);
      break;
    case "ClassDeclaration":
    case "ClassExpression": {
      const parent = as<{ superClass: { name?: string } | null }>(node).superClass;
      if (parent?.name && /Error$/.test(parent.name)) report("class that extends Error", node);
      break;
    }
    case "ExpressionStatement":
      if (as<{ directive?: string }>(node).directive)
        report("directive (does nothing there)", node);
      break;
    case "AssignmentExpression": {
      const { operator, left } = as<{ operator: string; left: Any }>(node);
      if (OPERATORS.has(operator)) report(`operator ${operator}`, node);
      if (left.type === "MemberExpression") {
        const { object, property, computed } = as<{
          object: Node;
          property: { name?: string };
          computed: boolean;
        }>(left);
        // Our own class may have a length; an array's cannot be set.
        if (!computed && property.name === "length" && object.type !== "ThisExpression")
          report("assignment to length", node);
      }
      break;
    }
    case "BinaryExpression":
    case "LogicalExpression":
      if (OPERATORS.has(as<{ operator: string }>(node).operator)) {
        report(`operator ${as<{ operator: string }>(node).operator}`, node);
      }
      break;
    case "MemberExpression": {
      const { property, computed } = as<{ property: { name?: string }; computed: boolean }>(node);
      if (!computed && property.name && MEMBERS.has(property.name))
        report(`member .${property.name}`, node);
      break;
    }
    case "ForInStatement":
      full(node, (inner) => {
        const unary = as<{ type: string; operator?: string }>(inner);
        if (unary.type === "UnaryExpression" && unary.operator === "delete")
          report("delete inside for-in", inner);
      });
      break;
  }
};

/** The children of each kind of node, from acorn-walk. */
const visitChildren = base as unknown as {
  readonly [type: string]: (node: unknown, state: unknown, next: (child: Any) => void) => void;
};

/**
 * Names: define before use, known globals only, no function in a loop that captures the loop's
 * variable.
 */
const checkNames = (
  program: Node,
  guarded: readonly string[],
  report: (rule: string, node: Node) => void,
): void => {
  const scopes: Scope[] = [];
  const functions: number[] = []; // The depth of scopes at which each open function begins.

  const declare = (name: string, at: number): void => {
    scopes.at(-1)?.names.set(name, at);
  };
  const within = (loop: boolean, names: readonly string[], work: () => void): void => {
    scopes.push({ names: new Map(names.map((name) => [name, -1])), loop });
    work();
    scopes.pop();
  };
  const use = (name: string, node: Node): void => {
    for (let depth = scopes.length - 1; depth >= 0; depth--) {
      const scope = scopes[depth] as Scope;
      if (!scope.names.has(name)) continue;
      const functionStart = functions.at(-1) ?? 0;
      if (scope.loop && functionStart > depth) report(`captured loop variable ${name}`, node);
      return;
    }
    if (!Object.hasOwn(GLOBALS, name) && !guarded.includes(name))
      report(`unknown or later defined name ${name}`, node);
  };

  const walk = (node: Any | null): void => {
    if (!node) return;
    const n = as<Record<string, Any & Any[]>>(node);
    switch (node.type) {
      case "Identifier":
        use(as<{ name: string }>(node).name, node);
        return;
      case "MemberExpression": {
        walk(n.object as Any);
        const { object, property, computed } = as<{
          object: { type: string; name: string };
          property: Any & { name: string };
          computed: boolean;
        }>(node);
        if (computed) walk(property);
        else if (object.type === "Identifier" && Object.hasOwn(GLOBALS, object.name)) {
          const known = GLOBALS[object.name] as readonly string[] | "any";
          const shadowed = scopes.some(({ names }) => names.has(object.name));
          const member = `${object.name}.${property.name}`;
          if (!shadowed && known !== "any" && !known.includes(property.name))
            if (!guarded.includes(member)) report(member, node);
        }
        return;
      }
      case "Property":
      case "MethodDefinition":
      case "PropertyDefinition":
        walk(n.value as Any);
        return;
      case "VariableDeclaration":
        for (const declarator of as<{ declarations: { id: Any & { name: string }; init: Any }[] }>(
          node,
        ).declarations) {
          // A function may name itself: it runs only after its name is assigned.
          if (declarator.init && isFunction(declarator.init))
            declare(declarator.id.name, node.start);
          walk(declarator.init);
          declare(declarator.id.name, node.start);
        }
        return;
      case "ClassDeclaration":
      case "ClassExpression": {
        const { id, superClass } = as<{ id: { name: string } | null; superClass: Any }>(node);
        if (id) declare(id.name, node.start);
        walk(superClass);
        walk(n.body as Any);
        return;
      }
      case "ArrowFunctionExpression":
      case "FunctionDeclaration":
      case "FunctionExpression": {
        const { params, body } = as<{ params: { name: string }[]; body: Any }>(node);
        functions.push(scopes.length);
        const names = params.map((param) => param.name ?? "?");
        within(
          false,
          [...names, ...(node.type === "FunctionExpression" ? ["arguments"] : [])],
          () => walk(body),
        );
        functions.pop();
        return;
      }
      case "BlockStatement":
        within(false, [], () => {
          for (const statement of as<{ body: Any[] }>(node).body) walk(statement);
        });
        return;
      case "ForStatement":
        within(true, [], () => {
          for (const part of [n.init, n.test, n.update, n.body]) walk(part as Any);
        });
        return;
      case "ForOfStatement":
      case "ForInStatement":
        walk(n.right as Any);
        within(true, [], () => {
          walk(n.left as Any);
          walk(n.body as Any);
        });
        return;
      case "CatchClause": {
        const { param, body } = as<{ param: { name: string } | null; body: Any }>(node);
        within(false, param ? [param.name] : [], () => walk(body));
        return;
      }
      default:
        visitChildren[node.type]?.(node, undefined, walk);
    }
  };

  within(false, [], () => walk(program as Any));
};

/**
 * Everything in a built file that Espruino would not run as written; empty if it is valid.
 * `guarded`: globals and members that are missing or accept invalid input there, and whose every
 * use is known to be checked.
 */
export const checkDialect = (code: string, guarded: readonly string[] = []): Finding[] => {
  const findings: Finding[] = [];
  const report = (rule: string, node: Node): void => {
    const { line, column } = (node as Node & { loc: { start: { line: number; column: number } } })
      .loc.start;
    findings.push({
      rule,
      line,
      column,
      text: code.slice(node.start, Math.min(node.end, node.start + 80)),
    });
  };
  const program = parse(code, {
    ecmaVersion: "latest",
    sourceType: "script",
    allowAwaitOutsideFunction: true, // To be refused by its name.
    locations: true,
  });
  full(program, (node) => checkNode(node as Any, report));
  checkNames(program, guarded, report);
  return findings;
};
