/**
 * Proves that the attacks find faults: rules whose absence is visible to the people around a
 * board, or on the wire, are left out of the built file, and the attacks must detect it. Sessions
 * inside cannot be examined here; mutants.test.ts of ../adversary does so with the same core, for
 * every rule.
 */
import { buildEspruino } from "@blindrelay/agent-sdk/testing/build/espruino";
import { expect, test } from "vitest";
import { play } from "../adversary/moves.ts";
import { MUTANTS, type Mutant } from "../adversary/mutants.ts";
import { espruinoFiles } from "../hostile-boards/espruino-board.ts";
import { buildEspruinoMutant } from "../hostile-boards/espruino-mutant.ts";
import { randomHistory } from "../hostile-boards/histories.ts";
import { HostileStage } from "../hostile-boards/hostile-stage.ts";
import { subsetHardware } from "../hostile-boards/subset-hardware.ts";

/** Several times what the hardest one needs. */
const SEEDS = 20;
const MOVES_AT_RANDOM = 150;

const violationsOf = (code: string, { rather = [] }: Mutant): readonly string[] => {
  const makeHardware = subsetHardware(espruinoFiles(code));
  for (let seed = 0; seed < SEEDS; seed++) {
    const stage = new HostileStage(makeHardware, seed);
    play(stage, randomHistory(seed, MOVES_AT_RANDOM, rather));
    if (stage.violations.length > 0) return stage.violations;
  }
  return [];
};

const HARM = /sealed twice with one nonce|executed again|executed \d+ ms after its deadline/;

test.each([
  "the boot count is raised at every start",
  "a missing boot count is never 0",
  "provisioning never lowers a boot count",
  "where a slot of the boot count is damaged, a count is skipped",
  "an epoch remembers what it stored",
  "an agent looks at its mark",
])("noticed when left out of the built file: %s", async (without) => {
  const mutant = MUTANTS.find((one) => one.without === without) as Mutant;
  const code = await buildEspruinoMutant(mutant.patches);
  expect(violationsOf(code, mutant)).toContainEqual(expect.stringMatching(HARM));
});

test("a copy without a patch builds the same file that the attacks run on", async () => {
  expect(await buildEspruinoMutant([])).toBe(buildEspruino("any").stored);
});
