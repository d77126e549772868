/** Preparing a device program for a board: the result, and what is refused with its place. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Failure } from "@blindrelay/protocol/command-line";
import { afterAll, expect, it } from "vitest";
import { readProgram } from "./program.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-program-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const read = (name: string, code: string) => {
  const path = join(folder, name);
  writeFileSync(path, code);
  return readProgram(path);
};

it("erases types, and keeps all line numbers", async () => {
  const source =
    "type A = { x: number };\nexport default (agent: A) => {\n  agent.x = 1 as number;\n};\n";
  const { code } = await read("typed.ts", source);
  expect(code.split("\n")).toHaveLength(source.split("\n").length);
  expect(code).not.toContain("number");
  // Node reports the place in the stack, which the tests' source maps replace: see test/src/cli.
  await expect(read("enum.ts", "enum A { B }")).rejects.toThrow(/enum\.ts:1:1: cannot be read/);
});

it("lists everything that Espruino would not run, with lines and alternatives", async () => {
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
  const lines = (failure as Failure).message.replaceAll(`${folder}/`, "").split("\n  ").slice(1);
  expect(lines).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^modern\.js:1:21: unknown or later defined name early/),
      expect.stringMatching(/^modern\.js:3:16: async or generator function/),
      expect.stringMatching(/^modern\.js:4:9: syntax: ObjectPattern/),
      expect.stringMatching(/^modern\.js:5:70: captured loop variable i/),
    ]),
  );
  const numbers = lines.map((line) => Number(/:(\d+):/.exec(line)?.[1]));
  expect(numbers).toEqual([...numbers].sort());
});

it("writes decimals in a form that a board reads exactly, on the same line", async () => {
  const { code } = await read("warm.js", "export default (agent) => {\n  agent.x = 21.5;\n};");
  expect(code.split("\n")[1]).toBe("  agent.x = (215/10);");
  const field =
    "class Valve { rate = 0.5; }\nexport default (agent) => { agent.x = new Valve(); };";
  expect((await read("valve.js", field)).code).toContain("rate = (5/10);");
});
