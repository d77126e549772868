/**
 * Pass: leaves functions in a board's flash. At rest such a function costs no variable, where a
 * resident one costs 4 and one for each parameter. Each use makes it from its text, which the
 * engine reads in place, and it is freed after its call.
 *
 * `markStored` marks them while their names are those of the source, `storeFunctions` writes the
 * file once they are short: first the texts of the functions, in a block that never runs; then what
 * a board evaluates at its start, with every use of a stored function as a call of a maker.
 *
 *   if(0)!function(){… {the text at 21034} …}
 *   _s=require("Storage").read("blindrelay");_1=o=>Function("o",_s.substr(o,1533));
 *   … _1(21034)(x) …
 *
 * Espruino executes the code of a function up to its end or to a `}` that closes nothing, whatever
 * comes after that (jspeBlockNoBrackets), so a place needs no length of its own.
 *
 * Not for functions that are compared by identity, nor for what keeps state.
 */
import type { ArrowFunctionExpression, CallExpression, Expression, Node } from "acorn";
import { full, fullAncestor } from "acorn-walk";
import { applyChanges, type Change, parsePiece, type Tree } from "./piece.ts";
import { tokenise } from "./tokens.ts";

/** Marks a function that is stored, until all passes are done. */
const STORED = "inStorage";
/** What comes before the functions. */
const NEVER = tokenise("if(0)!function(){}").slice(0, -1);
/**
 * A function that is used so often stays resident: it is worth its variables, as each use takes 7
 * bytes more of a board's flash where it is stored.
 */
const MANY_USES = 5;
const MAX_DIGITS = 6;

interface Declarator extends Node {
  readonly id: Node & { readonly name: string };
  readonly init: Expression | null;
}

const declaratorsOf = (statement: Node): readonly Declarator[] =>
  statement.type === "VariableDeclaration"
    ? (statement as unknown as { declarations: Declarator[] }).declarations
    : [];

/** How often each name is used, its declaration included. */
const usesIn = (code: string): Map<string, number> => {
  const uses = new Map<string, number>();
  const seen = new Set<number>();
  full(parsePiece(code), (found) => {
    const { name, start } = found as Tree & { name: string };
    if (found.type !== "Identifier" || seen.has(start)) return;
    seen.add(start);
    uses.set(name, (uses.get(name) ?? 0) + 1);
  });
  return uses;
};

/**
 * Marks all functions at the top level but `resident` ones, those that are used much, and what may
 * be assigned.
 */
export const markStored = (code: string, resident: ReadonlySet<string>): string => {
  const changes: Change[] = [];
  const uses = usesIn(code);
  const constants = parsePiece(code).body.filter((node) => (node as Tree).kind === "const");
  for (const { id, init } of constants.flatMap(declaratorsOf)) {
    if (init?.type !== "ArrowFunctionExpression" || resident.has(id.name)) continue;
    if ((uses.get(id.name) ?? 0) >= MANY_USES) continue;
    const { start, end } = init;
    changes.push({ start, end: start, text: `/* @__PURE__ */ ${STORED}(` });
    changes.push({ start: end, end, text: ")" });
  }
  return applyChanges(code, changes);
};

const markedIn = (init: Expression | null): ArrowFunctionExpression | null => {
  const { type, callee, arguments: given } = (init ?? {}) as CallExpression;
  if (type !== "CallExpression" || (callee as { name?: string }).name !== STORED) return null;
  return given[0] as ArrowFunctionExpression;
};

/** The code without marks. */
export const unmarked = (code: string): string => {
  const changes: Change[] = [];
  for (const { init } of parsePiece(code).body.flatMap(declaratorsOf)) {
    const marked = markedIn(init);
    if (!init || !marked) continue;
    changes.push({ start: init.start, end: marked.start, text: "" });
    changes.push({ start: marked.end, end: init.end, text: "" });
  }
  return applyChanges(code, changes);
};

/**
 * The names of all functions at the top level: nothing calls one before all of them are there, so
 * their uses may stand before them.
 */
export const functionNames = (code: string): string[] =>
  parsePiece(code)
    .body.flatMap(declaratorsOf)
    .filter(({ init }) => (markedIn(init) ?? init)?.type === "ArrowFunctionExpression")
    .map(({ id }) => id.name);

/** The names of stored functions. */
export const storedNames = (code: string): string[] =>
  parsePiece(code)
    .body.flatMap(declaratorsOf)
    .filter(({ init }) => markedIn(init) !== null)
    .map(({ id }) => id.name);

interface StoredFunction {
  readonly params: readonly string[];
  /** Tokenised, with a placeholder for each use of a stored function. */
  readonly text: string;
}

/** What one piece leaves of itself. */
interface StoredPiece {
  readonly main: string;
  readonly functions: readonly StoredFunction[];
}

interface Range {
  readonly start: number;
  readonly end: number;
}

const PLACEHOLDER = /stored\$(\d+)\$/g;

/** The text of a function's body, as statements. */
const bodyOf = (part: (range: Range) => string, { body }: ArrowFunctionExpression): string =>
  body.type === "BlockStatement"
    ? part({ start: body.start + 1, end: body.end - 1 })
    : `return ${part(body)}`;

/** Declarations at the top level become assignments, which make globals from everywhere. */
const readPiece = (code: string, indexOf: ReadonlyMap<string, number>): StoredPiece => {
  const uses: Change[] = [];
  fullAncestor(parsePiece(code), (found, _state, ancestors) => {
    const { type, name, start, end } = found as Tree & { name: string };
    const index = type === "Identifier" ? indexOf.get(name) : undefined;
    if (index === undefined) return;
    const parent = ancestors.at(-2) as Tree | undefined;
    if (parent?.type === "VariableDeclarator" && parent.id === found) return;
    uses.push({ start, end, text: `stored$${index}$` });
  });
  const unique = [...new Map(uses.map((use) => [use.start, use])).values()];
  const part = ({ start, end }: Range): string =>
    applyChanges(
      code.slice(start, end),
      unique
        .filter((use) => start <= use.start && use.end <= end)
        .map((use) => ({ ...use, start: use.start - start, end: use.end - start })),
    );
  const functions: StoredFunction[] = [];
  let main = "";
  for (const statement of parsePiece(code).body) {
    const declarators = declaratorsOf(statement);
    if (statement.type === "ClassDeclaration") {
      const { id, end } = statement;
      main += `${id.name}=class${part({ start: id.end, end })};`;
    } else if (declarators.length === 0) main += part(statement);
    for (const { id, init } of declarators) {
      const arrow = markedIn(init);
      if (arrow === null) {
        main += `${id.name}=${init ? part(init) : "void 0"};`;
        continue;
      }
      const text = tokenise(`()=>{${bodyOf(part, arrow)}}`);
      functions.push({
        params: arrow.params.map((param) => (param as { name: string }).name),
        text: text.slice(text.indexOf("{") + 1, text.lastIndexOf("}")),
      });
    }
  }
  return { main: tokenise(main), functions };
};

interface StoredFile {
  readonly stored: string;
  /** Bytes of each piece, in order. */
  readonly bytes: readonly number[];
}

/** `pieces`: code of each, with marks; the last one is the exports. `file`: its name in Storage. */
export const storeFunctions = (pieces: readonly string[], file: string): StoredFile => {
  const indexOf = new Map(pieces.flatMap(storedNames).map((name, i) => [name, i]));
  const read = pieces.map((code) => readPiece(code, indexOf));
  const functions = read.flatMap((piece) => piece.functions);
  const lists = functions.map(({ params }) => params).sort((a, b) => a.length - b.length);
  const all = lists.at(-1) ?? [];
  // esbuild names the parameters of all functions at the top level in one order.
  const odd = lists.find((params) => params.some((name, i) => name !== all[i]));
  if (odd) throw new Error(`a stored function has the parameters ${odd.join()}`);
  let places = functions.map(() => 0);
  const placed = (text: string): string =>
    text.replace(PLACEHOLDER, (_all, digits: string) => {
      const index = Number(digits);
      return `_${functions[index]?.params.length}(${places[index]})`;
    });
  // Not to the end of the file: an error in a function copies the text of each that led to it.
  const longest = (length: number): number =>
    Math.max(
      ...functions
        .filter(({ params }) => params.length === length)
        .map(({ text }) => placed(text).length),
    );
  const makerOf = (length: number): string => {
    const names = all.slice(0, length).map((name) => `"${name}",`);
    return `_${length}=o=>Function(${names.join("")}_s.substr(o,${longest(length)}));`;
  };
  const makers = [...new Set(lists.map(({ length }) => length))];
  const opening = `_s=require("Storage").read(${JSON.stringify(file)});`;
  // Until no number grows any more.
  for (let round = 0; round < MAX_DIGITS; round++) {
    let stored = NEVER;
    const next = functions.map(({ text }) => {
      const at = stored.length + 1;
      stored += `{${placed(text)}}`;
      return at;
    });
    const prelude = tokenise(opening + makers.map(makerOf).join(""));
    stored += `}\n${prelude}${read.map(({ main }) => placed(main)).join("")}\n`;
    if (next.join() === places.join()) {
      const bytes = read.map(({ main, functions: own }) =>
        [main, ...own.map(({ text }) => `{${text}}`)].reduce((sum, t) => sum + placed(t).length, 0),
      );
      return { stored, bytes };
    }
    places = next;
  }
  throw new Error("the places of stored functions do not settle");
};
