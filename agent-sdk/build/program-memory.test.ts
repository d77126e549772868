import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { BOARDS } from "./boards.ts";
import { estimateMemory, programVariables } from "./program-memory.ts";

const of = (text: string): string => `export default (agent) => { ${text} };`;
const answer = 'agent.handle("a", () => s);';

/** Programs, and what `process.memory().usage` grew by on an Espruino of 32 bits. */
const MEASURED: readonly (readonly [string, number])[] = [
  [of(""), 5],
  [of('agent.handle("a", () => 1);'), 24],
  [of('agent.handle("a", () => 1); agent.handle("b", () => 2);'), 32],
  [of('agent.handle("a", (params) => 1); agent.handle("b", (params) => 2);'), 36],
  [of('let tick = 0; agent.handle("a", () => tick);'), 25],
  [of('let tickslonger = 0; agent.handle("a", () => tickslonger);'), 26],
  [of(`const s = { a: 1, b: 2 }; ${answer}`), 28],
  [of(`const s = { a: 1.5, b: 2.5 }; ${answer}`), 30],
  [of(`const s = { a: "abc", b: "def" }; ${answer}`), 30],
  [of(`const s = "${"abcdefghij".repeat(6)}"; ${answer}`), 29],
  [of(`const s = [1, 2, 3]; ${answer}`), 29],
  [of('const step = () => 1; agent.handle("a", () => step());'), 32],
];

it.each(MEASURED)("counts as an engine of 32 bits does: %s", (code, measured) => {
  expect(programVariables(code)).toBe(measured);
});

it("says that a program with too many handlers does not fit", () => {
  const handlers = Array.from({ length: 90 }, (_, i) => `agent.handle("m${i}", () => ${i});`);
  expect(estimateMemory(of(handlers.join("")), "puck.js")?.fits).toBe(false);
  expect(estimateMemory(of(handlers.join("")), "esp32")?.fits).toBe(true);
});

it("knows the boards as the documentation's table has them", () => {
  const page = readFileSync(new URL("../../docs/espruino.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| ([^|]+) \| ([\d,]+) \| ([^|]+) \|.*$/gm)]
    .filter(([line]) => / (yes|no) \| [\d.]+ (KB|MB) \|/.test(line))
    .map(([, row, variables, network]) => [row, variables, network === "none in its build"]);
  const known = BOARDS.map(({ row, variables, isBridged }) =>
    JSON.stringify([row, variables.toLocaleString("en"), isBridged]),
  );
  expect([...new Set(known)]).toEqual(rows.map((row) => JSON.stringify(row)));
});
