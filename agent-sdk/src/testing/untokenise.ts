/** The reverse of build/tokens.ts, for stand-ins of boards that run on Node. */
import { tokenizer } from "acorn";
import { TEXTS } from "../../build/tokens.ts";

/** Converts back to JavaScript. */
export const untokenise = (stored: string): string =>
  stored.replace(/[\x80-\xff]/g, (byte) => ` ${TEXTS.get(byte) ?? byte} `);

/** Bytes at the beginning of a function's code in which its end is looked for first. */
const FIRST_BYTES = 512;

/** The same of a function's code, which ends where a `}` closes nothing (stored.ts). */
export const untokeniseFunction = (stored: string): string => {
  for (let bytes = FIRST_BYTES; ; bytes *= 4) {
    const code = untokenise(stored.substring(0, bytes));
    let depth = 0;
    try {
      for (const { type, start } of tokenizer(code, { ecmaVersion: "latest" })) {
        if (type.label === "{" || type.label === "${") depth++;
        if (type.label === "}" && depth-- === 0) return code.slice(0, start);
      }
    } catch (error) {
      if (bytes >= stored.length) throw error; // otherwise it is cut within a string
    }
    if (bytes >= stored.length) return code;
  }
};

/**
 * Run in the context of such a stand-in, where `hostFunction` is the above: its `Function` takes
 * what a board's takes. Stored functions keep no state, so one can serve all their calls.
 */
export const IMITATE_FUNCTION = `{
  const Code = Function, made = {};
  Function = function () {
    const given = [].slice.call(arguments), code = given.pop();
    const key = given.length + ":" + code.length + ":" + code.slice(0, 99);
    if (!made[key]) made[key] = Code.apply(null, given.concat(hostFunction(code)));
    return made[key];
  };
}`;
