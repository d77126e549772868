/**
 * What a taken-over account elsewhere could bring in: an action whose tag was moved, a package
 * manager of another content, a dependency released an hour ago.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** Workflows, and pages with workflows for users to copy. */
const files = execFileSync("git", ["ls-files", "*.yml", "*.yaml", "*.md"], { cwd: ROOT })
  .toString()
  .split("\n")
  .filter((file) => file !== "");

test("every action in a workflow or a page is pinned by its commit, with its version beside it", () => {
  const uses = files.flatMap((file) =>
    [...read(file).matchAll(/^\s*(?:- )?uses: +(.+)$/gm)].map(([, what]) => ({ file, what })),
  );
  expect(uses.length).toBeGreaterThan(8);
  const own = /^\.\//;
  const pinned = /^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/;
  expect(uses.filter(({ what = "" }) => !own.test(what) && !pinned.test(what))).toEqual([]);
});

test("one version of an action has one commit", () => {
  const commits = new Map<string, Set<string>>();
  for (const file of files) {
    for (const [, name, commit, version] of read(file).matchAll(
      /uses: +([\w./-]+)@([0-9a-f]{40}) # (v[\d.]+)/g,
    )) {
      const key = `${name} ${version}`;
      commits.set(key, (commits.get(key) ?? new Set()).add(commit as string));
    }
  }
  expect([...commits].filter(([, known]) => known.size !== 1)).toEqual([]);
});

test("the package manager is pinned by its hash, and everything runs that version", () => {
  const { packageManager } = JSON.parse(read("package.json")) as { packageManager: string };
  const [, version] = /^pnpm@(\d+\.\d+\.\d+)\+sha512\.[0-9a-f]{128}$/.exec(packageManager) ?? [];
  expect(version, packageManager).toBeDefined();
  for (const file of ["scripts/setup.mjs", "CONTRIBUTING.md"]) {
    const named = [...read(file).matchAll(/pnpm@([\w.]+)/g)].map(([, each]) => each);
    expect(new Set(named), file).toEqual(new Set([version]));
  }
});

test("a release must be at least a day old, with exceptions by version only", () => {
  const settings = read("pnpm-workspace.yaml");
  const [, minutes] = /^minimumReleaseAge: (\d+)$/m.exec(settings) ?? [];
  expect(Number(minutes)).toBeGreaterThanOrEqual(24 * 60);
  const [, excluded = ""] = /^minimumReleaseAgeExclude:\n((?: +- .*\n)+)/m.exec(settings) ?? [];
  for (const [, each] of excluded.matchAll(/- (.+)/g)) expect(each).toMatch(/.@\d+\.\d+\.\d+/);
});
