/** The device programs in the documents run on boards, and survive a call without parameters. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { checkProgram, toModule } from "./device-program.ts";

const root = resolve(import.meta.dirname, "../..");
const PAGES = ["README.md", "docs/device-programs.md", "agent-sdk/README.md"];

const programsOf = (page: string): string[] =>
  [...readFileSync(join(root, page), "utf8").matchAll(/^```js\n([\s\S]*?)^```$/gm)]
    .map(([, code]) => code as string)
    .filter((code) => /^export default/m.test(code) && !/^import /m.test(code));

/** As much of a board as `agent.storage` needs to find nothing. */
const BOARD = {
  E: { CRC32: () => 0, toUint8Array: (text: string) => Buffer.from(text, "latin1") },
  require: () => ({ read: () => undefined, write: () => true, erase: () => undefined }),
};

type Handler = (params?: unknown) => unknown;

const handlersOf = (code: string): Map<string, Handler> => {
  const handlers = new Map<string, Handler>();
  const load = `(function(module){${toModule(code)}\nreturn module.exports})({exports:{}})`;
  runInNewContext(
    load,
    BOARD,
  )({
    handle: (method: string, handler: Handler) => handlers.set(method, handler),
    emit: () => 0,
    every: () => () => undefined,
    now: () => 0,
  });
  return handlers;
};

describe.each(PAGES)("%s", (page) => {
  const programs = programsOf(page);

  it("contains a program, and boards run it", () => {
    expect(programs.length).toBeGreaterThan(0);
    for (const code of programs)
      expect(checkProgram(code)).toMatchObject({ refused: [], asked: [] });
  });

  it("answers a call without parameters, or reports what is missing", () => {
    for (const code of programs) {
      for (const [method, handler] of handlersOf(code)) {
        let message = "";
        try {
          handler(undefined);
        } catch (error) {
          message = (error as Error).message;
        }
        expect(`${method}: ${message}`).not.toContain("Cannot read properties");
      }
    }
  });
});
