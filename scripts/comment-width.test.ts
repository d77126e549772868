/** The formatter wraps code but not comments, so this test limits their width to 100 columns. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";

const COLUMNS = 100;
const root = resolve(import.meta.dirname, "..");
const isComment = (line: string): boolean => /^\s*(\/\*\*|\*|\/\/)/.test(line);
/** Such a comment has to stay on one line. */
const isDirective = (line: string): boolean => line.includes("biome-ignore");

const tooWide = (text: string): number[] =>
  text
    .split("\n")
    .flatMap((line, at) =>
      line.length > COLUMNS && isComment(line) && !isDirective(line) ? [at + 1] : [],
    );

test("no comment is wider than 100 columns", () => {
  const listed = execFileSync("git", ["ls-files", "*.ts", "*.tsx", "*.mjs", "*.js"], { cwd: root });
  const files = listed.toString().trim().split("\n");
  expect(files.length).toBeGreaterThan(500);
  const places = files.flatMap((path) =>
    tooWide(readFileSync(resolve(root, path), "utf8")).map((line) => `${path}:${line}`),
  );
  expect(places).toEqual([]);
});

test("a comment of 101 columns is reported, a directive and code of any width are not", () => {
  const wide = "x".repeat(COLUMNS - 2);
  expect(tooWide(`// ${wide}\n//${wide}\n`)).toEqual([1]);
  expect(tooWide(`  // biome-ignore lint/a: ${wide}\nconst a = "${wide}";`)).toEqual([]);
});
