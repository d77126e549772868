/**
 * A separate process that hunts mutants, because a mutant may hang or exhaust memory: for each
 * index among its arguments it builds the copy, searches it (or runs the check instead), and prints
 * one line of JSON. Index -1 is the unmutated copy.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadBuild } from "./build.ts";
import { CHECKS } from "./checks.ts";
import { buildMutant } from "./mutant-build.ts";
import { MUTANTS } from "./mutants.ts";
import { search } from "./search.ts";

/** The same for every mutant and for the unmutated copy. */
const EFFORT = { seed: 1, maxMoves: 80, quick: true };
/** Most mutants are found in the first history; some need nearly a hundred. */
const RUNS = 300;
/**
 * The number of histories that the unmutated copy must survive with each mutant's favourite moves.
 */
const CLEAN_RUNS = 5;

export interface Hunted {
  readonly index: number;
  /** The violation that revealed the mutant; null: none. */
  readonly by: string | null;
  /** Why there was nothing to hunt, such as a patch that no longer fits. */
  readonly problem: string | null;
  readonly runs: number;
  readonly ms: number;
}

const hunt = async (index: number): Promise<Hunted> => {
  const root = mkdtempSync(join(tmpdir(), "blindrelay-mutant-"));
  const started = performance.now();
  try {
    const mutant = MUTANTS[index];
    buildMutant(root, mutant?.patches ?? []);
    const build = await loadBuild(root);
    let by: string | null = null;
    let runs = 0;
    if (mutant?.instead !== undefined) {
      const check = CHECKS[mutant.instead.check];
      by = failureOf(() => check(build));
    } else {
      const tries = mutant === undefined ? MUTANTS : [mutant];
      const allowed = mutant === undefined ? CLEAN_RUNS : RUNS;
      for (const { rather = [] } of tries) {
        const found = search(build, { ...EFFORT, rather, runs: allowed });
        runs += found.runs;
        by ??= found.failure?.violations[0] ?? null;
      }
    }
    return { index, by, problem: null, runs, ms: Math.round(performance.now() - started) };
  } catch (thrown) {
    return { index, by: null, problem: String(thrown), runs: 0, ms: 0 };
  } finally {
    rmSync(root, { recursive: true });
  }
};

const failureOf = (check: () => void): string | null => {
  try {
    check();
    return null;
  } catch (thrown) {
    return String(thrown).split("\n")[0] ?? "";
  }
};

for (const index of process.argv.slice(2)) {
  process.stdout.write(`${JSON.stringify(await hunt(Number(index)))}\n`);
}
