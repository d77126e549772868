/** A device program on its way to a board: what becomes of it, and what is refused with its place. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { afterAll, expect, it } from "vitest";
import { Failure } from "../failure.ts";
import { readProgram, toModule } from "./program.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-program-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const read = (name: string, code: string) => {
  const path = join(folder, name);
  writeFileSync(path, code);
  return readProgram(path);
};

/** What `require` would give. */
const loaded = (code: string): unknown =>
  runInNewContext(`(function(module){${code}\nreturn module.exports})({exports:{}})`);

it.each([
  ["an arrow", "export default (agent) => { agent.x = 1; };"],
  [
    "a function without a semicolon",
    "export default function (agent) { agent.x = 1; }\n(() => 1)();",
  ],
  ["a named function", "export default function lamp(agent) { agent.x = 1; }"],
  ["a name", "const lamp = (agent) => { agent.x = 1; };\nexport default lamp;"],
  ["a comment in between", "export default /* the lamp */ (agent) => { agent.x = 1; } // it"],
  ["other exports", "export const pin = 1;\nexport default (agent) => { agent.x = pin; };"],
  [
    "the words in a text",
    'const t = "export default 5";\nexport default (agent) => { agent.x = t.length - 15; };',
  ],
])("takes %s", (_what, source) => {
  const agent = { x: 0 };
  (loaded(toModule(source, "p.js")) as (agent: object) => void)(agent);
  expect(agent.x).toBe(1);
});

it("erases types and comments, and keeps every line and blank where it stood", () => {
  const source =
    "type A = { x: number };\n/* one\n   two */\nexport default (agent: A) => {\n  agent.x = `a  \n b`.length as number; // end\n};\n";
  const code = toModule(source, "p.ts");
  expect(code.split("\n")).toHaveLength(source.split("\n").length);
  expect(code).not.toMatch(/one|two|end|number/);
  expect(code).toContain("`a  \n b`");
});

it("writes what its 8-bit strings hold, and refuses what they do not", () => {
  expect(toModule('export default () => "21 °C";', "p.js")).toContain("21 \\xb0C");
  expect(() => toModule('\nexport default () => "Ω";', "p.js")).toThrow(/^p\.js:2: .*8-bit/);
});

it.each([
  ["import fs from 'node:fs';\nexport default () => 1;", /p\.js:1: .*imports nothing/],
  ["\nexport * from './x.js';", /p\.js:2: .*re-exports/],
  ["const x = 1;", /export default/],
  ["export default (", /cannot be read/],
])("refuses %j", (source, message) => {
  expect(() => toModule(source, "p.js")).toThrow(message);
  expect(() => toModule(source, "p.js")).toThrow(Failure);
});

it("lists all that Espruino would not run, with lines and ways out", async () => {
  const code = [
    "const later = () => early();",
    "const early = () => 1;",
    "export default async (agent) => {",
    "  const { id } = agent;",
    "  for (let i = 0; i < 3; i++) agent.after(1, () => agent.log('info', i));",
    "};",
  ].join("\n");
  const failure = await read("modern.js", code).catch((error: Failure) => error);
  expect(failure).toMatchObject({ exitCode: 2 });
  const lines = (failure as Failure).message.split("\n  ").slice(1);
  expect(lines).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^modern\.js:1: unknown or later defined name early/),
      expect.stringMatching(/^modern\.js:3: async or generator function/),
      expect.stringMatching(/^modern\.js:4: syntax: ObjectPattern/),
      expect.stringMatching(/^modern\.js:5: captured loop variable i/),
    ]),
  );
  const numbers = lines.map((line) => Number(/:(\d+):/.exec(line)?.[1]));
  expect(numbers).toEqual([...numbers].sort());
});

it("asks the board for names that only a board knows", async () => {
  const code =
    "export default (agent) => { agent.handle('t', () => E.getTemperature() + analogRead(D13) * Math.random()); };";
  const { wanted } = await read("board.js", code);
  expect(wanted).toEqual(expect.arrayContaining(["analogRead", "D13", "Math.random"]));
  expect(wanted).not.toContain("module");
});

it("writes decimals as a board reads them exactly, on the same line", async () => {
  const { code } = await read("warm.js", "export default (agent) => {\n  agent.x = 21.5;\n};");
  expect(code.split("\n")[1]).toBe("  agent.x = (215/10);");
  const field =
    "class Valve { rate = 0.5; }\nexport default (agent) => { agent.x = new Valve(); };";
  expect((await read("valve.js", field)).code).toContain("rate = (5/10);");
});
