/** The formatter wraps code but not comments, so this test limits their width to 100 columns. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";

const COLUMNS = 100;
const root = resolve(import.meta.dirname, "..");

/** Kinds of files, and their comments: on lines of their own, or behind code. */
const KINDS = {
  source: {
    paths: ["*.ts", "*.tsx", "*.mjs", "*.js", "*.css"],
    comment: /^\s*(\/\*|\*|\/\/)|\s(\/\/|\/\*)\s/,
  },
  script: {
    paths: [
      ".ci/run",
      "*.sh",
      "*.yml",
      "*.yaml",
      "*.service",
      "*Caddyfile",
      "*Containerfile",
      "*.dockerignore",
      ":!pnpm-lock.yaml",
    ],
    comment: /(^|\s)#\s/,
  },
};
/** Such a comment has to stay on one line. */
const isDirective = (line: string): boolean => line.includes("biome-ignore");

const tooWide = (text: string, { comment }: { readonly comment: RegExp }): number[] =>
  text
    .split("\n")
    .flatMap((line, at) =>
      line.length > COLUMNS && comment.test(line) && !isDirective(line) ? [at + 1] : [],
    );

test.each([
  ["source", 500],
  ["script", 20],
] as const)("no comment of a %s is wider than 100 columns", (kind, filesAtLeast) => {
  const listed = execFileSync("git", ["ls-files", ...KINDS[kind].paths], { cwd: root });
  const files = listed.toString().trim().split("\n");
  expect(files.length).toBeGreaterThan(filesAtLeast);
  const places = files.flatMap((path) =>
    tooWide(readFileSync(resolve(root, path), "utf8"), KINDS[kind]).map(
      (line) => `${path}:${line}`,
    ),
  );
  expect(places).toEqual([]);
});

test("a comment of 101 columns is reported, a directive and code of any width are not", () => {
  const wide = "x".repeat(COLUMNS - 2);
  expect(tooWide(`// ${wide}\n//${wide}\n`, KINDS.source)).toEqual([1]);
  expect(tooWide(`let x; // ${wide}\n`, KINDS.source)).toEqual([1]);
  const allowed = `  // biome-ignore lint/a: ${wide}\nconst a = "${wide}";`;
  expect(tooWide(allowed, KINDS.source)).toEqual([]);
  expect(tooWide(`# ${wide}x\n- run: a # ${wide}\n`, KINDS.script)).toEqual([1, 2]);
  expect(tooWide(`run: "${wide}"`, KINDS.script)).toEqual([]);
});
