/**
 * The proof that the siege sees: rules whose lack the people around a board, or the wire, can notice are
 * left out of the built file, and the attacks must find it. Sessions inside cannot be looked into here;
 * mutants.test.ts of ../adversary does so with the same core, for every rule.
 */
import { expect, test } from "vitest";
import { buildEspruino } from "../../../agent-sdk/build/espruino.ts";
import { play } from "../adversary/moves.ts";
import { MUTANTS, type Mutant } from "../adversary/mutants.ts";
import { espruinoFiles } from "../siege/espruino-board.ts";
import { buildEspruinoMutant } from "../siege/espruino-mutant.ts";
import { attackHistory, randomHistory } from "../siege/histories.ts";
import { Siege } from "../siege/siege.ts";
import { subsetHardware } from "../siege/subset-hardware.ts";

/** Several times what finds the hardest of them. */
const SEEDS = 20;

const violationsOf = (code: string, { rather = [] }: Mutant): readonly string[] => {
  const makeHardware = subsetHardware(espruinoFiles(code));
  const histories = [
    ...rather.map(attackHistory),
    ...Array.from({ length: SEEDS }, (_, seed) => randomHistory(seed, 150)),
  ];
  for (const [seed, history] of histories.entries()) {
    const siege = new Siege(makeHardware, seed);
    play(siege, history);
    if (siege.violations.length > 0) return siege.violations;
  }
  return [];
};

const REUSE = /sealed twice with one nonce/;
const AGAIN = /executed again/;

test.each([
  ["the boot count is raised at every start", REUSE],
  ["a missing boot count is never 0", REUSE],
  ["where a slot of the boot count is damaged, a count is skipped", AGAIN],
  ["a stored session ends its epoch", REUSE],
  ["an agent looks at its mark", AGAIN],
])("noticed when left out of the built file: %s", async (without, violation) => {
  const mutant = MUTANTS.find((one) => one.without === without) as Mutant;
  const code = await buildEspruinoMutant(mutant.patches);
  expect(violationsOf(code, mutant)).toContainEqual(expect.stringMatching(violation));
});

test("a copy without a patch gives the file that is besieged", async () => {
  expect(await buildEspruinoMutant([])).toBe(buildEspruino().code);
});
