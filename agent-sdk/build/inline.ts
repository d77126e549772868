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
import { applyChanges, type Change, parsePiece } from "./piece.ts";

type Tree = Node & Record<string, unknown>;

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

/** The calls of a function by name, or null if it is used in another way or too often. */
const callsOf = (code: string, small: Small): CallExpression[] | null => {
  const calls: CallExpression[] = [];
  let others = 0;
  fullAncestor(parsePiece(code), (found, _state, ancestors) => {
    const node = found as Tree & { name: string; specifiers: { local: { name: string } }[] };
    if (node.type === "ExportNamedDeclaration")
      others += node.specifiers.filter(({ local }) => local.name === small.name).length;
    if (node.type !== "Identifier" || node.name !== small.name) return;
    if (node.start >= small.start && node.end <= small.end) return;
    const parent = ancestors.at(-2) as CallExpression | undefined;
    if (parent?.type === "CallExpression" && parent.callee === found) calls.push(parent);
    else others++;
  });
  const fits = calls.every(({ arguments: given }) => given.length === small.params.length);
  return others > 0 || calls.length > MAX_USES || !fits ? null : calls;
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

/** Inlines one function after another, including calls inside calls. */
export const inlineSmall = (code: string): string => {
  let text = code;
  const seen = new Set<string>();
  for (;;) {
    const inner = innerNames(text);
    const small = parsePiece(text)
      .body.map((statement) => readSmall(text, statement, inner))
      .find((candidate) => candidate && !seen.has(candidate.name) && !inner.has(candidate.name));
    if (!small) return text;
    seen.add(small.name);
    const calls = callsOf(text, small);
    if (!calls || small.text.length * (calls.length - 1) > MAX_ADDED) continue;
    // Innermost first: an argument may hold another call of the same function.
    const nested = calls.some((call) =>
      calls.some((other) => other !== call && other.start >= call.start && other.end <= call.end),
    );
    if (nested) continue;
    const changes: Change[] = calls.map((call) => ({
      start: call.start,
      end: call.end,
      text: written(text, small, call),
    }));
    changes.push({ start: small.start, end: small.end, text: "" });
    text = applyChanges(text, changes);
  }
};
