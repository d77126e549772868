/**
 * Pages stay short enough to be read: no page of docs has more than 3,500 words, but those that are
 * looked up; and no cell of a table is a paragraph.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "..");
const WORDS = 3_500;
const CELL_WORDS = 40;
/** Looked up, not read. */
const LISTS = ["docs/commands.md", "docs/decisions.md", "docs/specification.md"];

const pages = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "*.md"], {
  cwd: ROOT,
  encoding: "utf8",
})
  .trim()
  .split("\n")
  .filter((path) => !path.endsWith("CHANGELOG.md"))
  .map((path) => ({ path, text: readFileSync(resolve(ROOT, path), "utf8") }));

const wordsIn = (text: string): number => text.trim().split(/\s+/).length;

it("no page of docs has more than 3,500 words", () => {
  const read = pages.filter(({ path }) => path.startsWith("docs/") && !LISTS.includes(path));
  expect(read.length).toBeGreaterThan(15);
  const long = read.map(({ path, text }) => ({ path, words: wordsIn(text) }));
  expect(long.filter(({ words }) => words > WORDS)).toEqual([]);
});

it("no cell of a table has more than 40 words", () => {
  const wide = pages.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, at) => {
      const cells = line.startsWith("|") ? line.split(/(?<!\\)\|/) : [];
      return cells.some((cell) => wordsIn(cell) > CELL_WORDS) ? [`${path}:${at + 1}`] : [];
    }),
  );
  expect(wide).toEqual([]);
});
