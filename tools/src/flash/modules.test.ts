/** Modules that a board's firmware lacks, from a folder. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it, vi } from "vitest";
import { programsFor } from "../push/programs.ts";
import { carryModules } from "./modules.ts";
import { readProgram } from "./program.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-modules-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, code: string): string => {
  const path = join(folder, name);
  writeFileSync(path, code);
  return path;
};
const requiring = (...names: string[]): string =>
  `const all = [${names.map((name) => `require(${JSON.stringify(name)})`).join()}];
   export default (agent) => { agent.all = all; };`;
const isBuiltIn = (name: string): boolean => name === "Storage";

it("are carried once each, minified ones first, what they require before them", async () => {
  write("A.js", "exports.a = require('B') + require('C') + require('Storage');");
  write("B.js", "exports.b = require('C') + require('A');");
  write("C.js", "exports.whole = 1;");
  write("C.min.js", "exports.c=1");
  const program = await readProgram(write("all.js", requiring("A", "C", "Storage")));
  const { code, carried, missing } = await carryModules(program, folder, false, isBuiltIn);
  expect([carried, missing]).toEqual([["C", "B", "A"], []]);
  expect(code).not.toContain("whole");
  const bare = await carryModules(program, undefined, false, isBuiltIn);
  expect(bare).toEqual({ code: program.code, map: program.map, carried: [], missing: ["A", "C"] });
});

it("are looked for in that folder only", async () => {
  mkdirSync(join(folder, "inner"));
  write("outside.js", "exports.x = 1;");
  const program = await readProgram(write("away.js", requiring("../outside", "No")));
  const { missing } = await carryModules(program, join(folder, "inner"), false, isBuiltIn);
  expect(missing).toEqual(["../outside", "No"]);
});

it("are refused with the place where one cannot be read", async () => {
  const path = write("Bad.js", "exports.x = 1;\nexports.y = (;");
  const program = await readProgram(write("bad.js", requiring("Bad")));
  await expect(carryModules(program, folder, false, isBuiltIn)).rejects.toThrow(
    `${path}:2:14: cannot be read`,
  );
});

it("are told before a push according to the board's build", async () => {
  const told = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const path = write("two.js", requiring("crypto", "net", "Wifi"));
  const programs = programsFor(path, null, undefined);
  for (const [board, missing] of [
    ["ESP32", null],
    ["PUCKJS", "net, Wifi"],
    ["OTHER", "net, Wifi"],
  ]) {
    told.mockClear();
    await programs.ofRuntime(`espruino 2v29 ${board}`);
    const said = told.mock.calls.join("");
    if (missing === null) expect(said).toBe("");
    else expect(said).toContain(`if it lacks ${missing}: specify --modules DIR`);
  }
  told.mockRestore();
});
