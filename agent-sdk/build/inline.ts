/**
 * Pass: inlines small functions. `const f = (a, b) => expression` costs a board 7 variables, and
 * each call of it interpreter time and space on its small stack.
 *
 * Only where that cannot change the meaning: the expression has no function, assignment or `this`
 * in it; every parameter occurs in it once, in order (so arguments are evaluated in the same
 * order); its other names are declared at the top level only; and the function is never used as a
 * value.
 */
import type { ArrowFunctionExpression, CallExpression, Expression, Node } from "acorn";
import { full, fullAncestor } from "acorn-walk";
import { applyChanges, type Change, parsePiece, type Tree } from "./piece.ts";

interface Small {
  readonly name: string;
  readonly params: readonly string[];
  /** Its text, and the positions of the parameters in it. */
  readonly text: string;
  readonly places: readonly { readonly start: number; readonly end: number }[];
  /** The statement that declares it. */
  readonly start: number;
  readonly end: number;
}

/** A longer expression saves no flash, and little else. */
const MAX_TEXT = 120;
const MAX_USES = 8;
/** More characters of flash than that are not worth the variables. */
const MAX_ADDED = 40;

const HARMLESS = new Set([
  ...["Identifier", "Literal", "MemberExpression", "CallExpression", "NewExpression"],
  ...["BinaryExpression", "UnaryExpression", "TemplateLiteral", "TemplateElement"],
  ...["ConditionalExpression", "LogicalExpression", "ObjectExpression", "Property"],
]);

/** Names declared anywhere below the top level: parameters, locals, caught errors. */
const innerNames = (code: string): Set<string> => {
  const names = new Set<string>();
  const program = parsePiece(code);
  const top = new Set(
    program.body.flatMap((statement) =>
      statement.type === "VariableDeclaration" ? statement.declarations : [],
    ) as Node[],
  );
  full(program, (found) => {
    const node = found as Tree;
    if (node.type === "VariableDeclarator" && !top.has(found))
      names.add((node.id as { name: string }).name);
    for (const param of (node.params as { name: string }[] | undefined) ?? [])
      names.add(param.name);
    if (node.type === "CatchClause" && node.param) names.add((node.param as { name: string }).name);
  });
  return names;
};

const readSmall = (code: string, statement: Node, inner: ReadonlySet<string>): Small | null => {
  const { declarations } = statement as unknown as {
    declarations?: { id: { name: string }; init: Expression | null }[];
  };
  const declarator = declarations?.[0];
  const arrow = declarator?.init as ArrowFunctionExpression | null | undefined;
  if (!declarator || arrow?.type !== "ArrowFunctionExpression" || !arrow.expression) return null;
  const { start, end } = arrow.body;
  if (end - start > MAX_TEXT) return null;
  const params = arrow.params.map((param) => (param as { name: string }).name);
  const uses: { name: string; start: number; end: number }[] = [];
  let harmless = true;
  full(arrow.body, (found) => {
    const node = found as Tree & { name: string };
    if (!HARMLESS.has(node.type)) harmless = false;
    if (node.type === "Identifier")
      uses.push({ name: node.name, start: node.start, end: node.end });
  });
  uses.sort((a, b) => a.start - b.start);
  const places = uses.filter(({ name }) => params.includes(name));
  const foreign = uses.filter(({ name }) => !params.includes(name));
  const inOrder = places.map(({ name }) => name).join() === params.join();
  if (!harmless || !inOrder || foreign.some(({ name }) => inner.has(name))) return null;
  // A branch, or what `||` guards, would leave an argument unevaluated.
  if (places.length > 1 && /[?]|&&|\|\|/.test(code.slice(start, end))) return null;
  return {
    name: declarator.id.name,
    params,
    text: code.slice(start, end),
    places: places.map((place) => ({ start: place.start - start, end: place.end - start })),
    start: statement.start,
    end: statement.end,
  };
};

interface Use {
  readonly start: number;
  /** Null: used in another way than by a call. */
  readonly call: CallExpression | null;
}

/** Every use of every name, its declaration included. */
const usesOf = (code: string): Map<string, Use[]> => {
  const uses = new Map<string, Use[]>();
  const add = (name: string, start: number, call: CallExpression | null): void => {
    const known = uses.get(name);
    if (known === undefined) uses.set(name, [{ start, call }]);
    else known.push({ start, call });
  };
  fullAncestor(parsePiece(code), (found, _state, ancestors) => {
    const node = found as Tree & { name: string; specifiers: { local: { name: string } }[] };
    if (node.type === "ExportNamedDeclaration")
      for (const { local } of node.specifiers) add(local.name, node.start, null);
    if (node.type !== "Identifier") return;
    const parent = ancestors.at(-2) as CallExpression | undefined;
    const isCall = parent?.type === "CallExpression" && parent.callee === found;
    add(node.name, node.start, isCall ? parent : null);
  });
  return uses;
};

/** The calls of a function, or null if it is used in another way or too often. */
const callsOf = (small: Small, uses: readonly Use[]): CallExpression[] | null => {
  const calls: CallExpression[] = [];
  for (const { start, call } of uses) {
    if (start >= small.start && start < small.end) continue;
    if (call === null || call.arguments.length !== small.params.length) return null;
    calls.push(call);
  }
  return calls.length > MAX_USES ? null : calls;
};

/** The expression with the arguments of one call inserted. */
const written = (code: string, small: Small, call: CallExpression): string =>
  `(${applyChanges(
    small.text,
    small.places.map(({ start, end }, i) => {
      const { start: from, end: to } = call.arguments[i] as Node;
      return { start, end, text: `(${code.slice(from, to)})` };
    }),
  )})`;

const overlap = (a: { start: number; end: number }, b: { start: number; end: number }): boolean =>
  a.start < b.end && b.start < a.end;

/** Inlines functions in rounds: a call inside what a round changes waits for the next one. */
export const inlineSmall = (code: string): string => {
  let text = code;
  const seen = new Set<string>();
  for (;;) {
    const inner = innerNames(text);
    const uses = usesOf(text);
    const changes: Change[] = [];
    for (const statement of parsePiece(text).body) {
      const small = readSmall(text, statement, inner);
      if (!small || seen.has(small.name) || inner.has(small.name)) continue;
      const calls = callsOf(small, uses.get(small.name) ?? []);
      const touched = [small, ...(calls ?? [])];
      if (touched.some((one) => changes.some((change) => overlap(one, change)))) break;
      seen.add(small.name);
      if (!calls || small.text.length * (calls.length - 1) > MAX_ADDED) continue;
      // An argument may hold another call of the same function.
      if (calls.some((call) => calls.some((other) => other !== call && overlap(call, other)))) {
        continue;
      }
      for (const call of calls) {
        changes.push({ start: call.start, end: call.end, text: written(text, small, call) });
      }
      changes.push({ start: small.start, end: small.end, text: "" });
    }
    if (changes.length === 0) return text;
    text = applyChanges(text, changes);
  }
};
