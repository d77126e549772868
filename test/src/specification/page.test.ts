/**
 * The page, the tests and the specification agree; and the check that compares them detects
 * differences.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import {
  checkPage,
  compareStatements,
  type Page,
  readPage,
  readStatements,
  readTests,
} from "./page.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const PAGE = readPage(readFileSync(join(ROOT, "docs/specification.md"), "utf8"));

/** The specification's text is not in this repository; without it, its test is skipped. */
const GIVEN = resolve(ROOT, "../shared/specification.txt");

const TESTS = new Map(
  readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith(".test.ts") && name !== "page.test.ts")
    .map((name) => {
      const source = readFileSync(join(import.meta.dirname, name), "utf8");
      return [name.replace(".test.ts", ""), readTests(source)] as const;
    }),
);

const exists = (path: string): boolean => existsSync(join(ROOT, path));

describe("docs/specification.md", () => {
  test("has a test for each row, a row for each test, and names files that are there", () => {
    expect(PAGE.rows.length).toBeGreaterThan(100);
    expect(checkPage(PAGE, TESTS, exists)).toEqual([]);
  });

  test.skipIf(!existsSync(GIVEN))(
    "has each statement of ../shared/specification.txt, word for word",
    () => {
      const statements = readStatements(readFileSync(GIVEN, "utf8"));
      expect(compareStatements(PAGE.rows, statements)).toEqual([]);
    },
  );
});

describe("the check finds", () => {
  const row = { id: "a.b", statement: "It is not shown.", files: ["a.ts"], test: "some" };
  const page = (more: Partial<Page> = {}): Page => ({
    rows: [row],
    decisions: new Map([["a.b", "It is."]]),
    ...more,
  });
  const tests = new Map([["some", ["a.b"]]]);
  const problems = (one: Page, theirs = tests, isThere = true) =>
    checkPage(one, theirs, () => isThere);

  test.each([
    ["nothing where all is well", problems(page()), []],
    [
      "a row without a test",
      problems(page(), new Map([["some", []]])),
      ["a.b has no test in some"],
    ],
    [
      "a test without a row",
      problems(page(), new Map([["some", ["a.b", "a.c"]]])),
      ["the test a.c in some has no row"],
    ],
    ["a file that is gone", problems(page(), tests, false), ["a.b names a.ts, which is not there"]],
    [
      "a row without a file",
      problems(page({ rows: [{ ...row, files: [] }] })),
      ["a.b names no file"],
    ],
    ["a row twice", problems(page({ rows: [row, row] })), ["a.b stands twice"]],
    [
      "what is not shown and not decided",
      problems(page({ decisions: new Map() })),
      ["a.b has no decision"],
    ],
    [
      "a decision about nothing",
      problems(
        page({
          decisions: new Map([
            ["a.b", "x"],
            ["a.c", "x"],
          ]),
        }),
      ),
      ["no row a.c to decide about"],
    ],
  ])("%s", (_, found, expected) => {
    expect(found).toEqual(expected);
  });

  test("a statement that is missing, invented, changed or moved", () => {
    const rows = (...statements: string[]) =>
      statements.map((statement) => ({ ...row, statement }));
    expect(compareStatements(rows("one", "two"), ["one", "two"])).toEqual([]);
    expect(compareStatements(rows("one"), ["one", "two"])).toEqual(["not on the page: two"]);
    expect(compareStatements(rows("one", "two"), ["one"])).toEqual([
      "not in the specification: two",
    ]);
    expect(compareStatements(rows("two", "one"), ["one", "two"])).toEqual(["out of order: two"]);
  });

  test("statements in tables, lists and sentences, and tests however they are written", () => {
    const specification = [
      "# Title\n\nRelay rules:\n\n1. First.\n- Second.\n\nThird.\n",
      "| Field | Notes |\n|---|---|\n| a | b \\| c |\n| d | |\n",
    ].join("\n");
    expect(readStatements(specification)).toEqual([
      "First.",
      "Second.",
      "Third.",
      "a · b | c",
      "d",
    ]);
    const source = 'test("a.b", x);\n  test("no.top", x);\ntest.skipIf(!y)("c.d", x);\n';
    expect(readTests(source)).toEqual(["a.b", "c.d"]);
  });
});
