import fs, { fstatSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, it, vi } from "vitest";
import { flushFolder, IS_WINDOWS, pipeOf } from "./platform.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-platform-"));
const inner = join(folder, "a");
mkdirSync(inner);
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("a folder has one pipe, however its path is written, and no other has it", () => {
  const pipe = pipeOf(inner);
  expect(pipe).toMatch(/^\\\\\.\\pipe\\blindrelay-[0-9a-f]{32}$/);
  expect(pipeOf(`${folder}/./a/../a/`)).toBe(pipe);
  expect(pipeOf(folder)).not.toBe(pipe);
});

it.skipIf(IS_WINDOWS)("a folder is flushed, and let go even if that fails", () => {
  const flushed: number[] = [];
  vi.spyOn(fs, "fsyncSync").mockImplementation((handle) => {
    expect(fstatSync(handle).ino).toBe(statSync(inner).ino);
    flushed.push(handle);
    if (flushed.length > 1) throw new Error("the disk is gone");
  });
  syncBuiltinESMExports();
  flushFolder(inner);
  expect(() => flushFolder(inner)).toThrow("the disk is gone");
  expect(flushed).toHaveLength(2);
  for (const handle of flushed) expect(() => fstatSync(handle)).toThrow("EBADF");
  expect(() => flushFolder(join(folder, "none"))).toThrow("ENOENT");
});
