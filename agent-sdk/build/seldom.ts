/**
 * Pass: makes methods that run seldom only while one of them runs. They become functions of their
 * object, in one function for each row, which a call makes and releases again (as lazy.ts does with
 * whole modules). At rest a row costs a board 6 variables, where each method costs 5 and one for
 * each parameter.
 *
 * Only for methods that are called by their own class on `this`, and nowhere else; and that make no
 * closure, because one would keep the whole row for as long as it lives.
 */
import type { CallExpression, ClassDeclaration, MemberExpression, MethodDefinition } from "acorn";
import { fullAncestor } from "acorn-walk";
import { applyChanges, type Change, type Piece, parsePiece, THIS } from "./piece.ts";

/** Methods of a class that are made together; rows and methods stand after those that they call. */
export interface SeldomRow {
  readonly of: string;
  readonly methods: readonly string[];
}

const functionOf = (method: string): string => `${method}Seldom`;
const nameOf = (method: MethodDefinition): string => (method.key as { name: string }).name;

const splitClass = (code: string, found: ClassDeclaration, rows: readonly SeldomRow[]): string => {
  const rowOf = (name: string): SeldomRow | undefined =>
    rows.find(({ methods }) => methods.includes(name));
  const makerOf = (row: SeldomRow): string => `makeSeldom${row.of}${rows.indexOf(row)}`;
  const taken = found.body.body.filter(
    (member): member is MethodDefinition =>
      member.type === "MethodDefinition" && rowOf(nameOf(member)) !== undefined,
  );
  for (const { of, methods } of rows)
    for (const name of methods)
      if (!taken.some((method) => nameOf(method) === name))
        throw new Error(`${of}.${name} is no method`);
  const outside = new Set<string>();
  const changes: Change[] = [];
  fullAncestor(found, (node, _state, ancestors) => {
    const within = taken.find((method) => method.start <= node.start && node.end <= method.end);
    const own = within && rowOf(nameOf(within));
    if (within && node.type === "ArrowFunctionExpression")
      throw new Error(`${found.id.name}.${nameOf(within)} makes a closure`);
    const parent = ancestors.at(-2);
    const member = node as MemberExpression;
    if (node.type === "ThisExpression") {
      const property = (parent as MemberExpression).property as { name?: string } | undefined;
      const called = parent?.type === "MemberExpression" && rowOf(property?.name ?? "");
      if (within && !called) changes.push({ start: node.start, end: node.end, text: THIS });
    } else if (node.type === "MemberExpression" && member.object.type === "ThisExpression") {
      const { name } = member.property as { name: string };
      const row = rowOf(name);
      if (!row) return;
      const call = parent as CallExpression;
      if (call?.type !== "CallExpression" || call.callee !== node)
        throw new Error(`${row.of}.${name} is used as a value`);
      if (row !== own) outside.add(name);
      const target = row === own ? functionOf(name) : `${makerOf(row)}().${functionOf(name)}`;
      const open = code.indexOf("(", node.end) + 1;
      const self = `${within ? THIS : "this"}${call.arguments.length > 0 ? ", " : ""}`;
      changes.push({ start: node.start, end: open, text: `${target}(${self}` });
    }
  });
  const part = (start: number, end: number): string =>
    applyChanges(
      code.slice(start, end),
      changes
        .filter((change) => start <= change.start && change.end <= end)
        .map(({ start: from, end: to, text }) => ({ start: from - start, end: to - start, text })),
    );
  const made = rows.map((row) => {
    const own = row.methods.flatMap((name) => taken.filter((method) => nameOf(method) === name));
    const functions = own.map((method) => {
      const { params, body } = method.value;
      const names = [THIS, ...params.map((param) => code.slice(param.start, param.end))];
      return `const ${functionOf(nameOf(method))} = (${names.join(", ")}) => ${part(body.start, body.end)};`;
    });
    const offered = own
      .map((method) => nameOf(method))
      .filter((name) => outside.has(name))
      .map((name) => `${functionOf(name)}: ${functionOf(name)}`);
    return `const ${makerOf(row)} = () => {\n${functions.join("\n")}\nreturn { ${offered.join(", ")} };\n};`;
  });
  let rest = "";
  let at = found.start;
  for (const method of taken) {
    rest += part(at, method.start);
    at = method.end;
  }
  return `${made.join("\n")}\n${rest}${part(at, found.end)}`;
};

/** Takes the methods of `rows` out of their classes. */
export const makeSeldom = (pieces: readonly Piece[], rows: readonly SeldomRow[]): Piece[] =>
  pieces.map((piece) => {
    const changes: Change[] = [];
    for (const statement of parsePiece(piece.code).body) {
      if (statement.type !== "ClassDeclaration") continue;
      const own = rows.filter(({ of }) => of === statement.id.name);
      if (own.length === 0) continue;
      const { start, end } = statement;
      changes.push({ start, end, text: splitClass(piece.code, statement, own) });
    }
    return { ...piece, code: applyChanges(piece.code, changes) };
  });
