/**
 * Parses JSON that a person wrote. Engines report errors in their own words, and quote the text,
 * which may contain a secret; this reports line and column, and quotes nothing.
 */

/** Space, then one token: a mark, a string, or a number, true, false or null. */
const TOKEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: strings may not hold them.
  /[ \t\n\r]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![0-9A-Za-z_.]))/y;
const SPACE = /[ \t\n\r]*/y;

type Wanted = "value" | "value or ]" | "key" | "key or }" | ":" | ", or end" | "nothing";

/** The place of the first unexpected token; the text's length if it ends too early. */
const brokenAt = (text: string): number => {
  const open: string[] = [];
  let wanted: Wanted = "value";
  TOKEN.lastIndex = 0;
  for (;;) {
    SPACE.lastIndex = TOKEN.lastIndex;
    SPACE.test(text);
    const at = SPACE.lastIndex;
    const [, mark, string, other] = TOKEN.exec(text) ?? [];
    const isKey = wanted === "key" || wanted === "key or }";
    const isValue = wanted === "value" || wanted === "value or ]";
    if (isKey && string !== undefined) wanted = ":";
    else if (wanted === ":" && mark === ":") wanted = "value";
    else if (isValue && mark === "{") {
      open.push("}");
      wanted = "key or }";
    } else if (isValue && mark === "[") {
      open.push("]");
      wanted = "value or ]";
    } else if (wanted === ", or end" && mark === ",") {
      wanted = open.at(-1) === "}" ? "key" : "value";
    } else {
      const ends =
        (isValue && (string ?? other) !== undefined) ||
        (mark === "]" && wanted === "value or ]") ||
        (mark === "}" && wanted === "key or }") ||
        (wanted === ", or end" && mark !== undefined && mark === open.at(-1));
      if (!ends) return at;
      if (mark !== undefined) open.pop();
      wanted = open.length === 0 ? "nothing" : ", or end";
    }
  }
};

/** Throws a SyntaxError: `invalid JSON (line 3, column 7)`, both counted from 1. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    const before = text.slice(0, brokenAt(text)).split("\n");
    const column = (before.at(-1) as string).length + 1;
    throw new SyntaxError(`invalid JSON (line ${before.length}, column ${column})`);
  }
};
