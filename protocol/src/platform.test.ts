import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { flushFolder, pipeOf } from "./platform.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-platform-"));
const inner = join(folder, "a");
mkdirSync(inner);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("a folder has one pipe, however its path is written, and no other has it", () => {
  const pipe = pipeOf(inner);
  expect(pipe).toMatch(/^\\\\\.\\pipe\\blindrelay-[0-9a-f]{32}$/);
  expect(pipeOf(`${folder}/./a/../a/`)).toBe(pipe);
  expect(pipeOf(folder)).not.toBe(pipe);
});

it("a folder that is not there cannot be flushed", () => {
  flushFolder(inner);
  expect(() => flushFolder(join(folder, "none"))).toThrow("ENOENT");
});
