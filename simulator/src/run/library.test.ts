/** The library is clean: what the planted bugs' test (testing/planted) finds is not there. */
import { expect, test } from "vitest";
import { listLibrary, loadScenario } from "../scenario/load.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual } from "./virtual.ts";

const NAMES = listLibrary().map(({ name }) => name);

test.each(NAMES)("no oracle objects to %s, and its thresholds hold", async (name) => {
  const { scenario, folder } = await loadScenario(name);
  // Another seed for each scenario, so that they do not all draw alike.
  const seed = 1 + NAMES.indexOf(name);
  const { report } = await runVirtual(scenario, { seed, programs: loadPrograms(scenario, folder) });
  expect(report.stopped).toBeNull();
  expect(report.thresholds.filter(({ ok }) => !ok)).toEqual([]);
});
