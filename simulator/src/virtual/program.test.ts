import type { Agent } from "@blindrelay/agent-sdk";
import { describe, expect, test } from "vitest";
import type { ScenarioError } from "../scenario/problems.ts";
import { makeGlobals, type Running } from "./globals.ts";
import { describeError, parseProgram } from "./program.ts";

const running: Running = {
  wallMs: () => 1_000_000,
  monotonicMs: () => 5,
  setTimer: () => null,
  clearTimer: () => undefined,
  randomFraction: () => 0.25,
  randomBytes: (length) => new Uint8Array(length).fill(7),
  print: () => undefined,
};

/** The result of a program's handler, in a separate instance. */
function ask(source: string, file = "pump.js"): () => unknown {
  const handlers: (() => unknown)[] = [];
  const agent = { handle: (_: string, fn: () => unknown) => handlers.push(fn) };
  parseProgram(source, file).instantiate(makeGlobals(() => running))(agent as unknown as Agent);
  return handlers[0] as () => unknown;
}

function problemsOf(source: string): string[] {
  try {
    parseProgram(source, "pump.js");
    return [];
  } catch (error) {
    return (error as ScenarioError).message.split("\n");
  }
}

describe("a device program in the virtual world", () => {
  test("has the world's clock, randomness and crypto", () => {
    const answer = ask(`export default (agent) => {
      agent.handle("m", () => [Date.now(), new Date().toISOString(), new Date(0).getTime(),
        Math.random(), Math.max(1, 2), performance.now(), crypto.randomUUID(),
        [...crypto.getRandomValues(new Uint8Array(2))], new Date() instanceof Date]);
    };`);
    expect(answer()).toEqual([
      1_000_000,
      "1970-01-01T00:16:40.000Z",
      0,
      0.25,
      2,
      5,
      "07070707-0707-4707-8707-070707070707",
      [7, 7],
      true,
    ]);
  });

  test.each([
    ["export default (agent) => { agent.handle('m', () => n++); };"],
    ["export default function main(agent) { agent.handle('m', () => n++); }"],
    ["export default function (agent) { agent.handle('m', () => n++); }"],
    ["function main(agent) { agent.handle('m', () => n++); }\nexport { main as default };"],
  ])("has separate variables, however it is exported: %s", (program) => {
    const source = `let n = 1; ${program}`;
    expect([ask(source)(), ask(source)()]).toEqual([1, 1]);
    const one = ask(source);
    expect([one(), one()]).toEqual([1, 2]);
  });

  test("may be TypeScript, and may declare names that the world has", () => {
    expect(
      ask(
        "const Date: number = 4; export default (agent: any) => { agent.handle('m', () => Date); };",
        "pump.ts",
      )(),
    ).toBe(4);
  });

  test("keeps its lines and columns in errors", () => {
    const fail = ask(
      "// one\nexport default (agent) => {\n  agent.handle('m', () => {\n    throw new Error('x'); }); };",
    );
    try {
      fail();
      expect.unreachable();
    } catch (error) {
      expect((error as Error).stack).toContain("pump.js:4:11");
    }
  });

  test.each([
    ["export default () => fetch('x');", "pump.js:1:22: fetch reaches the real network"],
    [
      "\n  import fs from 'node:fs'; export default () => fs;",
      "pump.js:2:3: importing node:fs reaches real I/O",
    ],
    [
      "import x from './x.js'; export default () => x;",
      "pump.js:1:1: a device program is one file",
    ],
    [
      "export { default } from './x.js';",
      "pump.js:1:1: a device program is one file: bundle ./x.js",
    ],
    [
      "export default () => AbortSignal.timeout(9);",
      "pump.js:1:22: AbortSignal reaches the real c",
    ],
    ["export default () => new Event('x');", "pump.js:1:26: Event reaches the real clock"],
    ["export default () => localStorage.a;", "pump.js:1:22: localStorage reaches what all devices"],
    ["export default () => process.env.X;", "pump.js:1:22: process reaches the real process"],
    ["export default () => globalThis.Date;", "pump.js:1:22: globalThis reaches"],
    ["export default () => import('x');", "pump.js:1:22: import() reaches"],
    ["export default () => eval('1');", "pump.js:1:22: eval reaches the real globals"],
    [
      "export default () => (() => {}).constructor('return process')();",
      "pump.js:1:22: code from a string reaches the real globals",
    ],
    [
      "export default (agent) => new agent.handle['constructor'](`return 1`)();",
      "pump.js:1:27: code from a string reaches the real globals",
    ],
    ["const x = await 1; export default () => x;", "pump.js:1:11: await outside of a function"],
    ["const x = 1;", "pump.js:1:1: a device program exports a function"],
    ["export default (agent => {\n  agent.;", "pump.js:2:9: Unexpected token"],
  ])("is refused with the place if it leaves the world: %s", (source, problem) => {
    expect(problemsOf(source)[0]).toContain(problem);
  });

  test.each([["() => {}"], ["async () => {}"], ["function* () {}"], ["async function* () {}"]])(
    "makes no code from strings with the constructor of %s",
    (fn) => {
      const make = ask(`export default (agent) => {
        agent.handle("m", () => (${fn})["construc" + "tor"]("return process")());
      };`);
      try {
        make();
        expect.unreachable();
      } catch (error) {
        const described = describeError(error, { file: "pump.js" });
        expect(described).toMatch(/^EvalError: Code generation .*\(pump\.js:2:/);
      }
    },
  );

  test("finds Node's globals that are no way out, and others absent", () => {
    const look = ask(`export default (agent) => {
      agent.handle("m", () => [typeof TextEncoder, typeof process, typeof fetch]);
    };`);
    expect(look()).toEqual(["function", "undefined", "undefined"]);
  });

  test("may use a forbidden name as a property, as its own name, or in a guard", () => {
    expect(
      problemsOf(
        "export default (agent) => { const process = { fetch: 1 }; if (typeof require === 'undefined') agent.x = process.fetch; };",
      ),
    ).toEqual([]);
  });
});
