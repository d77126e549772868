import { lstatSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { writeWholeFile } from "./whole-file.ts";

it("a link stays one, and the file that it leads to is written", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [file, link] = [join(folder, "agent.json"), join(folder, "linked.json")];
  writeFileSync(file, "one");
  symlinkSync(file, link);
  writeWholeFile(link, "two");
  expect([readFileSync(file, "utf8"), lstatSync(link).isSymbolicLink()]).toEqual(["two", true]);
});
