/**
 * Pass: turns methods into functions of their object, which stored.ts can then leave in a board's
 * flash. A method costs a board 4 variables and one for each parameter for as long as its class
 * exists, which is as long as the program runs.
 *
 * Only methods that are private, or whose name is ours and is declared by one class of the file;
 * and that are called wherever they are named. Others stay methods.
 */
import type {
  CallExpression,
  ClassDeclaration,
  MemberExpression,
  MethodDefinition,
  Node,
} from "acorn";
import { full, fullAncestor } from "acorn-walk";
import { applyChanges, type Change, type Named, parsePiece, THIS, type Tree } from "./piece.ts";

interface Method {
  readonly of: ClassDeclaration;
  readonly node: MethodDefinition;
}

const nameOf = (node: unknown): string => (node as Named).name;

/** Whether a method may be a function. */
interface MethodRules {
  /** Its name is no built-in's, and no device program uses it. */
  isOurs(name: string): boolean;
  /** Only methods of its own class call it, on `this`. */
  isPrivate(of: string, name: string): boolean;
}

interface Methods {
  /** The function for a call; null if it is another's method, or stays one. */
  called(call: CallExpression): Method | null;
  readonly all: readonly Method[];
}

const methodsOf = (code: string, rules: MethodRules): Methods => {
  const program = parsePiece(code);
  const found: Method[] = [];
  for (const statement of program.body) {
    if (statement.type !== "ClassDeclaration") continue;
    for (const node of statement.body.body) {
      if (node.type !== "MethodDefinition" || node.kind !== "method" || node.static) continue;
      found.push({ of: statement, node });
    }
  }
  /** Names with another meaning than one method, and methods that are no mere callees of `this`. */
  const ambiguous = new Set<string>();
  const values = new Set<Method>();
  const ownOf = ({ start, end }: Node, name: string): Method | undefined =>
    found.find((one) => one.of.start < start && end < one.of.end && nameOf(one.node.key) === name);
  const places = new Map<string, number>();
  fullAncestor(program, (visited, _state, ancestors) => {
    const node = visited as Tree;
    const parent = ancestors.at(-2) as Tree | undefined;
    if (node.type === "MethodDefinition") {
      const name = nameOf(node.key);
      const known = places.get(name) ?? node.start;
      places.set(name, known);
      const isOne = found.some(({ node: { start } }) => start === node.start);
      if (known !== node.start || !isOne) ambiguous.add(name);
    } else if (node.type === "Property" || node.type === "PropertyDefinition") {
      ambiguous.add(nameOf(node.key));
    } else if (node.type === "Literal" && typeof node.value === "string") {
      ambiguous.add(node.value);
    } else if (node.type === "MemberExpression" && !node.computed) {
      const isCalled = parent?.type === "CallExpression" && parent.callee === node;
      if (isCalled && (node.object as Node).type !== "Super") return;
      const name = nameOf(node.property);
      ambiguous.add(name);
      const own = ownOf(node, name);
      if (own) values.add(own);
    }
  });
  const isFree = (name: string): boolean => rules.isOurs(name) && !ambiguous.has(name);
  const all = found.filter((method) => {
    const name = nameOf(method.node.key);
    return isFree(name) || (rules.isPrivate(method.of.id.name, name) && !values.has(method));
  });
  return {
    all,
    called: ({ callee }) => {
      const { object, property } = callee as MemberExpression;
      const name = nameOf(property);
      if (object.type === "ThisExpression") {
        const own = ownOf(object, name);
        if (own) return all.includes(own) ? own : null;
      }
      return isFree(name) ? (all.find(({ node: { key } }) => nameOf(key) === name) ?? null) : null;
    },
  };
};

export const methodsToFunctions = (code: string, rules: MethodRules): string => {
  const { all, called } = methodsOf(code, rules);
  const functionOf = ({ of, node }: Method): string => `${nameOf(node.key)}Of${of.id.name}`;
  const within = (node: Node): Method | undefined =>
    all.find(({ node: { start, end } }) => start <= node.start && node.end <= end);
  const opens: { at: number; end: number; text: string }[] = [];
  const changes: Change[] = [];
  full(parsePiece(code), (found) => {
    if (found.type === "ThisExpression") {
      if (within(found)) changes.push({ start: found.start, end: found.end, text: THIS });
      return;
    }
    const call = found as CallExpression;
    const callee = call.callee as MemberExpression | undefined;
    if (call.type !== "CallExpression" || callee?.type !== "MemberExpression" || callee.computed)
      return;
    const method = called(call);
    if (method === null) return;
    opens.push({ at: call.start, end: call.end, text: `${functionOf(method)}(` });
    // What is between the object and its first argument, without the name.
    const between = code.slice(callee.object.end, callee.property.start).replace(/\.\s*$/, "");
    const end = code.indexOf("(", callee.property.end) + 1;
    const text = `${between}${call.arguments.length > 0 ? ", " : ""}`;
    changes.push({ start: callee.object.end, end, text });
  });
  // Of those that begin at one place the outer first, and all before what they begin with.
  const starts = [...new Map(opens.map((open) => [`${open.at}-${open.end}`, open])).values()]
    .sort((a, b) => b.end - a.end)
    .map(({ at, text }) => ({ start: at, end: at, text }));
  const unique = [...new Map(changes.map((change) => [change.start, change])).values()];
  const edits = [...starts, ...unique];
  const part = (start: number, end: number): string =>
    applyChanges(
      code.slice(start, end),
      edits
        .filter((edit) => start <= edit.start && edit.end <= end)
        .map((edit) => ({ ...edit, start: edit.start - start, end: edit.end - start })),
    );
  let result = "";
  let at = 0;
  for (const statement of parsePiece(code).body) {
    if (statement.type !== "ClassDeclaration") continue;
    const own = all.filter(({ of }) => of.start === statement.start);
    const inOrder = own.sort((a, b) => a.node.start - b.node.start);
    result += part(at, statement.start);
    for (const method of inOrder) {
      const { params, body } = method.node.value;
      const names = [THIS, ...params.map((param) => code.slice(param.start, param.end))];
      const text = part(body.start, body.end);
      result += `const ${functionOf(method)} = (${names.join(", ")}) => ${text};\n`;
    }
    at = statement.start;
    for (const { node } of inOrder) {
      result += part(at, node.start);
      at = node.end;
    }
  }
  return result + part(at, code.length);
};

/**
 * Pass: assigns class fields in the constructor. On a board a field is a property of the prototype,
 * so it takes its variables a second time once an object has its own. Not in a class that extends
 * another.
 */
export const fieldsToConstructors = (code: string): string => {
  const changes: Change[] = [];
  for (const statement of parsePiece(code).body) {
    if (statement.type !== "ClassDeclaration" || statement.superClass) continue;
    const members = statement.body.body;
    const built = members.find(
      (member): member is MethodDefinition =>
        member.type === "MethodDefinition" && member.kind === "constructor",
    );
    let assigned = "";
    for (const member of members) {
      if (member.type !== "PropertyDefinition" || !built || member.static || !member.value)
        continue;
      const { start, end } = member.value;
      assigned += ` this.${nameOf(member.key)} = ${code.slice(start, end)};`;
      changes.push({ start: member.start, end: member.end, text: "" });
    }
    const at = (built?.value.body.start ?? 0) + 1;
    if (assigned !== "") changes.push({ start: at, end: at, text: assigned });
  }
  return applyChanges(code, changes);
};
