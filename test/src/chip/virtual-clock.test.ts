/**
 * The chip on a virtual clock: what calls cost, and the malicious relay. `CHIP_HOSTILE=whole`:
 * every attack, by hand.
 */
import { fileURLToPath } from "node:url";
import type { XsModules } from "@blindrelay/agent-sdk/testing/build/xs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chipHardware } from "../hostile-boards/chip-hardware.ts";
import { hostileRelayTests } from "../hostile-boards/hostile-relay-tests.ts";
import { budgets } from "./budgets.ts";
import { CountedChip, costsOf, overBudget } from "./counted.ts";
import { CHIP_LIMITS, ChipFolder, chip, whySkipped, withoutChip } from "./house.ts";

const whole = process.env.CHIP_HOSTILE === "whole";
const CLIENTS = 32;
const PROGRAM = fileURLToPath(new URL("../hostile-boards/program.ts", import.meta.url));

/** Into what the core does for each call. */
const RECEIVE = "receive(plaintext,sid,ageMs,answer){";

describe.skipIf(withoutChip)(`a chip on a virtual clock${whySkipped}`, () => {
  const folder = new ChipFolder();
  let image: string;
  beforeAll(async () => {
    image = await folder.image("attacked", { program: PROGRAM });
  });
  afterAll(() => folder.close());

  const exact =
    withoutChip || chip.tools === budgets.tools ? "" : " (instructions: other tools, not compared)";

  it(`spends what is budgeted on openings and calls${exact}`, async () => {
    const costs = await costsOf(new CountedChip(folder, image), CLIENTS);
    console.log(`chip: ${JSON.stringify(costs)}`);
    expect(overBudget(costs)).toEqual([]);
  });

  it.each([
    ["a leak of 64 bytes a call", "(this.planted??=[]).push(new Uint8Array(64));", "kept"],
    ["a write into the baked core", "planted.n++;", "aliases"],
    ["a deeper recursion", "(function f(n){return n&&f(n-1)+1})(40);", "jsStack"],
    ["a deeper recursion in C", "JSON.stringify([[[[[[[[]]]]]]]]);", "cStack"],
  ])("notices %s", async (_what, plant, budget) => {
    const change = ({ core, ...others }: XsModules): XsModules => {
      const changed = core.replace(RECEIVE, `${RECEIVE}${plant}`);
      expect(changed).not.toBe(core);
      return { ...others, core: `var planted={n:0};${changed}` };
    };
    const planted = await folder.image("attacked", { program: PROGRAM, change });
    expect(overBudget(await costsOf(new CountedChip(folder, planted), 4))).toContain(budget);
  });

  describe("behind a malicious relay", () => {
    hostileRelayTests({
      makeHardware: () => chipHardware({ chip, image, limits: CHIP_LIMITS }),
      seeds: whole ? [1, 2, 3] : [1],
      movesAtRandom: whole ? 150 : 30,
      ...(whole ? {} : { attacks: ["replaySession"] }),
    });
  });
});
