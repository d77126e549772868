/** The malicious relay, and agents on the chip. `CHIP_HOSTILE=whole`: every attack, by hand. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe } from "vitest";
import { chipHardware } from "../hostile-boards/chip-hardware.ts";
import { hostileRelayTests } from "../hostile-boards/hostile-relay-tests.ts";
import { CHIP_LIMITS, ChipFolder, chip, whySkipped, withoutChip } from "./house.ts";

const whole = process.env.CHIP_HOSTILE === "whole";
const PROGRAM = fileURLToPath(new URL("../hostile-boards/program.ts", import.meta.url));

describe.skipIf(withoutChip)(`agents on a chip behind a malicious relay${whySkipped}`, () => {
  const folder = new ChipFolder();
  let image: string;
  beforeAll(async () => {
    image = await folder.image("attacked", { program: PROGRAM });
  });
  afterAll(() => folder.close());

  hostileRelayTests({
    makeHardware: () => chipHardware({ chip, image, limits: CHIP_LIMITS }),
    seeds: whole ? [1, 2, 3] : [1],
    movesAtRandom: whole ? 150 : 30,
    ...(whole ? {} : { attacks: ["malform", "cutPower"] }),
  });
});
