/**
 * Proves that the search is effective: every rule that it covers is left out in a copy of the
 * sources, and the same search must detect that. Two processes share the work.
 */
import { beforeAll, expect, test } from "vitest";
import type { Hunted } from "./hunt.ts";
import { patched } from "./mutant-build.ts";
import { MUTANTS } from "./mutants.ts";
import { inTwoProcesses } from "./two-processes.ts";

const HUNT = new URL("hunt.ts", import.meta.url);
const CLEAN = -1;
/** Only for a mutant that hangs: the rest take 20 s of each core, however long that takes. */
const TIMEOUT_MS = 900_000;

const found = new Map<number, Hunted>();

beforeAll(async () => {
  const all = [CLEAN, ...MUTANTS.keys()].map(String);
  for (const hunted of await inTwoProcesses<Hunted>(HUNT, all)) found.set(hunted.index, hunted);
}, TIMEOUT_MS);

test("the copy without a patch passes the search that finds the others", () => {
  expect(found.get(CLEAN)).toMatchObject({ by: null, problem: null });
  expect(found.get(CLEAN)?.runs).toBeGreaterThan(50);
});

test.each(MUTANTS.map((mutant, index) => [mutant.without, index] as const))(
  "noticed when left out: %s",
  (_without, index) => {
    expect(found.get(index)).toMatchObject({ by: expect.any(String), problem: null });
  },
);

test("a patch whose text is not there exactly once is refused", () => {
  const patch = { file: "x.ts", find: "a", replace: "b" };
  expect(patched("a", patch)).toBe("b");
  expect(() => patched("", patch)).toThrow("0 times");
  expect(() => patched("a a", patch)).toThrow("2 times");
});
