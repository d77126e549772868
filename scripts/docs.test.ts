/**
 * Links in the documents lead to existing files and headings: a tour through files that moved is
 * worse than none.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "..");

const documents = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "*.md"], {
  cwd: ROOT,
  encoding: "utf8",
})
  .split("\n")
  .filter((name) => name !== "" && existsSync(join(ROOT, name)));

/** Links to files and folders, without anchors; links to other sites do not count. */
const linksOf = (text: string): string[] =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => (target as string).replace(/#.*$/, ""))
    .filter((target) => target !== "" && !/^[a-z]+:/.test(target));

/** The anchors that GitHub makes of a document's headings. */
const anchorsOf = (text: string): string[] =>
  [...text.replace(/^```[\s\S]*?^```/gm, "").matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    (heading as string)
      .toLowerCase()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-"),
  );

/** Links to headings: the document, as a path from the root, and the anchor. */
const headingLinksOf = (name: string, text: string): [path: string, anchor: string][] =>
  [...text.matchAll(/\]\(([^)\s#:]*)#([^)\s]+)\)/g)].map(([, path, anchor]) => [
    path === "" ? join(ROOT, name) : resolve(ROOT, dirname(name), path as string),
    anchor as string,
  ]);

/** Paths below a top-level folder in backquotes, up to the first pattern. */
const pathsOf = (text: string): string[] =>
  [
    ...text.matchAll(
      /`((?:protocol|agent-sdk|client-sdk|relay-server|console|simulator|tools|test|bench|scripts|docs)\/[\w./-]+)`/g,
    ),
  ]
    .map(([, path]) => path as string)
    .filter((path) => !path.includes("/dist/"));

describe.each(documents)("%s", (name) => {
  const text = readFileSync(join(ROOT, name), "utf8");

  it("links to files that exist", () => {
    const missing = linksOf(text).filter(
      (target) => !existsSync(resolve(ROOT, dirname(name), target)),
    );
    expect(missing).toEqual([]);
  });

  it("links to headings that exist", () => {
    const missing = headingLinksOf(name, text).filter(
      ([path, anchor]) =>
        existsSync(path) && !anchorsOf(readFileSync(path, "utf8")).includes(anchor),
    );
    expect(missing).toEqual([]);
  });

  it("names paths that exist", () => {
    const missing = pathsOf(text).filter(
      (path) => !existsSync(join(ROOT, path)) && !existsSync(resolve(ROOT, dirname(name), path)),
    );
    expect(missing).toEqual([]);
  });
});

describe("the wire contract", () => {
  const sources = execFileSync("git", ["ls-files", "agent-sdk/src", "protocol/src"], {
    cwd: ROOT,
    encoding: "utf8",
  })
    .split("\n")
    .filter(
      (name) => name.endsWith(".ts") && !name.includes(".test.") && existsSync(join(ROOT, name)),
    );
  const named = sources.flatMap((name) =>
    [
      ...readFileSync(join(ROOT, name), "utf8").matchAll(
        /["'](?:system|serial|stream)\.[a-z]+["']/g,
      ),
    ].map(([text]) => text.slice(1, -1)),
  );

  it("describes every method and notification of our agents", () => {
    const readme = readFileSync(join(ROOT, "protocol/README.md"), "utf8");
    const methods = [...new Set(named)];
    expect(methods).toEqual(expect.arrayContaining(["system.logged", "serial.resume"]));
    expect(methods.filter((method) => !readme.includes(`\`${method}`))).toEqual([]);
  });
});
