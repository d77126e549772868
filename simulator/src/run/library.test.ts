/**
 * The library is clean: it contains none of what the planted-bugs test (testing/planted) finds. With
 * the model of cryptography, which gives the same timeline (virtual/model-suite.test.ts).
 */
import { expect, test } from "vitest";
import { listLibrary, loadScenario } from "../scenario/load.ts";
import { loadPrograms } from "../virtual/programs.ts";
import { runVirtual } from "../virtual/run.ts";

const NAMES = listLibrary().map(({ name }) => name);

test.each(NAMES)(
  "%s violates no oracle, its thresholds hold, and no call fails that it does not allow",
  async (name) => {
    const { scenario, folder } = await loadScenario(name);
    // A different seed for each scenario, so that they do not all draw the same numbers.
    const seed = 1 + NAMES.indexOf(name);
    const { report } = await runVirtual(scenario, {
      seed,
      crypto: "model",
      programs: loadPrograms(scenario, folder),
    });
    expect(report.stopped).toBeNull();
    expect([...report.thresholds, ...report.oracles].filter(({ ok }) => !ok)).toEqual([]);
    expect(report.ok).toBe(true);
  },
);
