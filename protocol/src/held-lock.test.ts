/** The lock as one process sees it; file-lock.test.ts has several. */
import { chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Failure } from "./command-line.ts";
import { holdLock, withLock } from "./file-lock.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-held-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("is held once, until it is released, and each file has its own", () => {
  const path = join(folder, "new", "file");
  const release = holdLock(path);
  expect(release).not.toBe(null);
  expect(holdLock(path)).toBe(null);
  const other = holdLock(join(folder, "other"));
  expect(other).not.toBe(null);
  release?.();
  holdLock(path)?.();
  expect(statSync(`${path}.lock`).mode & 0o777).toBe(0o600);
  other?.();
});

it("keeps a change from a file that is held, with the reason", () => {
  const path = join(folder, "file");
  const release = holdLock(path);
  const change = () => withLock(path, () => expect.unreachable(), 1);
  expect(change).toThrow(Failure);
  expect(change).toThrow(
    `cannot write ${path}: another process is changing it and does not finish; end that one`,
  );
  release?.();
  withLock(path, () => expect(holdLock(path)).toBe(null));
  holdLock(path)?.();
});

it("is released by a change that throws, and makes the folder that is missing", () => {
  const path = join(folder, "new", "file");
  const change = () =>
    withLock(path, () => {
      throw new Error("no change");
    });
  expect(change).toThrow("no change");
  const release = holdLock(path);
  expect(release).not.toBe(null);
  release?.();
});

it("is not had where there can be no file", () => {
  writeFileSync(join(folder, "a"), "");
  const path = join(folder, "a", "b", "file");
  expect(() => holdLock(path)).toThrow("ENOTDIR");
  expect(() => withLock(path, () => undefined)).toThrow(/cannot write .*ENOTDIR/);
  expect(() => withLock(path, () => undefined)).toThrow(
    expect.objectContaining({ kind: "usage", cause: expect.objectContaining({ code: "ENOTDIR" }) }),
  );
});

it.skipIf(process.geteuid?.() !== 0)("made by root belongs to the folder's owner", () => {
  chownSync(folder, 65_534, 65_534);
  holdLock(join(folder, "file"))?.();
  expect(statSync(join(folder, "file.lock")).uid).toBe(65_534);
});
