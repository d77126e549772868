/**
 * Pass: writes reserved words and long operators as the single bytes that Espruino's lexer uses for
 * them, so `return x` takes 2 bytes of a board's flash instead of 8 and is read faster. Espruino's
 * own tools do the same ("pretokenise"). The numbers are fixed in its src/jslex.h, which promises
 * not to reorder them; a build without arrow functions and classes cannot run this file anyway.
 *
 * The result is a byte string that no other engine reads as JavaScript: this is the last pass,
 * after all checks.
 */
import { type Node, parse, type Token } from "acorn";
import { full } from "acorn-walk";

/** The number of the first one, `LEX_EQUAL`. */
const FIRST_TOKEN = 138;
/** In the order of Espruino's list, with the operator that was added later at its own number. */
const TOKENS = `== === != !== <= << <<= >= >> >>> >>= >>>= += -= ++ -- *= /= %= &= && |= || ^= =>
  if else do while for break continue function return var let const this throw try catch finally
  true false null undefined new in instanceof switch case default delete typeof void debugger class
  extends super static of`.split(/\s+/);
const NULLISH = 208;

/** The word for each byte. */
export const TEXTS: ReadonlyMap<string, string> = new Map(
  TOKENS.map((text, i) => [String.fromCharCode(FIRST_TOKEN + i), text] as const).concat([
    [String.fromCharCode(NULLISH), "??"],
  ]),
);
const BYTES = new Map([...TEXTS].map(([byte, text]) => [text, byte]));

/** Where such words are not reserved, as in `agent.delete`, and text that is parsed later. */
const keptPlaces = (
  program: Node,
): { readonly names: ReadonlySet<number>; readonly templates: readonly Node[] } => {
  const names = new Set<number>();
  const templates: Node[] = [];
  full(program, (found) => {
    if (found.type === "TemplateLiteral") templates.push(found);
    const { name } = found as Node & { name?: string };
    if (found.type === "Identifier" && name !== "undefined") names.add(found.start);
    const { key, property, computed } = found as Node & {
      key?: Node;
      property?: Node;
      computed?: boolean;
    };
    for (const word of [key, property]) if (word && computed !== true) names.add(word.start);
  });
  return { names, templates };
};

/** `code`: ASCII, without comments. */
export const tokenise = (code: string): string => {
  const tokens: Token[] = [];
  const options = { ecmaVersion: "latest", sourceType: "script", onToken: tokens } as const;
  const { names, templates } = keptPlaces(parse(code, options));
  let result = "";
  let at = 0;
  /** The last thing written was one of the bytes above, so no space is needed after it. */
  let afterByte = false;
  for (const { start, end } of tokens) {
    if (start < at) continue; // in a template, which was copied whole
    const template = templates.find((node) => node.start === start);
    const stop = template?.end ?? end;
    const text = code.slice(start, stop);
    const byte = names.has(start) || template ? undefined : BYTES.get(text);
    const blanks = code.slice(at, start);
    // Two words, or two operators as in `+ +`, are kept apart; a newline may end a statement.
    if (blanks.includes("\n")) result += "\n";
    else if (blanks !== "" && !afterByte && byte === undefined) result += " ";
    result += byte ?? text;
    afterByte = byte !== undefined;
    at = stop;
  }
  return result + code.slice(at);
};
