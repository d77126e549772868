import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ATTACKS } from "./table.ts";

const ROOT = join(import.meta.dirname, "../../..");
const ROWS = 57;

test("every row has its tests, and no row stands twice", () => {
  const rows = ATTACKS.flatMap(({ rows }) => [...rows]);
  expect(rows.sort((a, b) => a - b)).toEqual(Array.from({ length: ROWS }, (_, n) => n + 1));
});

test("every test that the table names is there", () => {
  const missing = ATTACKS.flatMap(({ tests }) => tests).filter(
    ([file, title]) => !readFileSync(join(ROOT, file), "utf8").includes(title),
  );
  expect(missing).toEqual([]);
  expect(ATTACKS.filter(({ tests }) => tests.length === 0)).toEqual([]);
});
