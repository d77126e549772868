import { mkdtemp, readdir, readFile, readlink, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { replaceFile } from "./replace-file.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "blindrelay-test-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it("replaces a file as a whole, and leaves it as it was where it cannot", async () => {
  const file = join(folder, "report.json");
  await replaceFile(file, "one");
  await replaceFile(file, "two");
  // Fails half-way, as on a full disk.
  const text = (async function* () {
    yield "half";
    throw new Error("no space");
  })();
  await expect(replaceFile(file, text as never)).rejects.toThrow("no space");
  expect([await readFile(file, "utf8"), await readdir(folder)]).toEqual(["two", ["report.json"]]);
});

it("writes what a link leads to", async () => {
  const [file, link] = [join(folder, "report.json"), join(folder, "latest.json")];
  await replaceFile(file, "one");
  await symlink(file, link);
  await replaceFile(link, "two");
  expect([await readFile(file, "utf8"), await readlink(link)]).toEqual(["two", file]);
});

it("writes to what is no file, and does not replace it", async () => {
  const file = join(folder, "null");
  await symlink("/dev/null", file);
  await replaceFile(file, "text");
  expect(await readFile(file, "utf8")).toBe("");
});
