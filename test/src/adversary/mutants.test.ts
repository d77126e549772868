/**
 * Proves that the search is effective: every rule that it covers is left out in a copy of the
 * sources, and the same search must detect that. Two processes share the work.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import type { Hunted } from "./hunt.ts";
import { patched } from "./mutant-build.ts";
import { MUTANTS } from "./mutants.ts";

const HUNT = fileURLToPath(new URL("hunt.ts", import.meta.url));
const CLEAN = -1;
/** Only for a mutant that hangs: the rest take 20 s of each core, however long that takes. */
const TIMEOUT_MS = 900_000;

const found = new Map<number, Hunted>();

const hunt = (indexes: readonly number[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [HUNT, ...indexes.map(String)]);
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      err += chunk.toString();
    });
    child.on("error", reject);
    child.on("close", () => {
      for (const line of out.split("\n").filter((text) => text !== "")) {
        const hunted = JSON.parse(line) as Hunted;
        found.set(hunted.index, hunted);
      }
      if (err === "") resolve();
      else reject(new Error(err));
    });
  });

beforeAll(async () => {
  const all = [CLEAN, ...MUTANTS.keys()];
  await Promise.all([0, 1].map((half) => hunt(all.filter((_index, i) => i % 2 === half))));
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
