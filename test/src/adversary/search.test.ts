import { expect, test } from "vitest";
import { loadBuild, REPOSITORY } from "./build.ts";
import { type Found, search } from "./search.ts";

/**
 * Set ADVERSARY_SEED=n ADVERSARY_RUNS=n to search elsewhere or longer; add ADVERSARY_PATH to
 * replay.
 */
const { ADVERSARY_SEED = "20261121", ADVERSARY_RUNS = "500", ADVERSARY_PATH } = process.env;
const TIMEOUT_MS = 600_000;

const report = ({ failure }: Found): string => {
  if (failure === null) return "nothing found";
  const { seed, path, worldSeed, history, violations } = failure;
  return [
    ...violations,
    `replay: ADVERSARY_SEED=${seed} ADVERSARY_PATH=${path} npm run unit -- test/src/adversary/search.test.ts`,
    `world ${worldSeed}, moves:`,
    ...history.map((move) => `  ${move.join(" ")}`),
  ].join("\n");
};

test("a finding is shrunk, printed and found again from its seed and path", {
  timeout: TIMEOUT_MS,
}, async () => {
  const build = await loadBuild(REPOSITORY);
  const raiseBootCount = () => ({ ok: true, count: 2 }) as const;
  const forgetful = { ...build, agent: { ...build.agent, raiseBootCount } };
  const options = { seed: 2, runs: 100, maxMoves: 40 };
  const found = search(forgetful, options);
  expect(report(found)).toMatch(/replay: ADVERSARY_SEED=2 ADVERSARY_PATH=/);
  expect(found.failure?.history.length).toBeLessThan(10);
  const again = search(forgetful, { ...options, path: found.failure?.path ?? "" });
  expect(again.runs).toBe(1);
  expect(again.failure?.history).toEqual(found.failure?.history);
});

test(
  "no history of attacks breaks a rule, crashes a peer or keeps one from recovering",
  async () => {
    const build = await loadBuild(REPOSITORY);
    const found = search(build, {
      seed: Number(ADVERSARY_SEED),
      runs: Number(ADVERSARY_RUNS),
      maxMoves: 80,
      ...(ADVERSARY_PATH === undefined ? {} : { path: ADVERSARY_PATH }),
    });
    expect(report(found)).toBe("nothing found");
    if (ADVERSARY_PATH === undefined) expect(found.runs).toBe(Number(ADVERSARY_RUNS));
  },
  TIMEOUT_MS,
);
