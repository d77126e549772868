/** The malicious relay against the built Espruino file on a real Espruino, where ESPRUINO_BIN names one. */
import { beforeAll, describe } from "vitest";
import { buildEspruino } from "../../../agent-sdk/build/espruino.ts";
import { engineHardware } from "../siege/engine-hardware.ts";
import { espruinoFiles } from "../siege/espruino-board.ts";
import type { MakeHardware } from "../siege/hardware.ts";
import { siegeTests } from "../siege/siege-tests.ts";
import { binary, whySkipped } from "./engine.ts";

describe.skipIf(binary === null)(
  `agents on a real Espruino behind a malicious relay${whySkipped(binary, "ESPRUINO_BIN")}`,
  { timeout: 600_000 },
  () => {
    let hardware: MakeHardware;
    beforeAll(async () => {
      hardware = await engineHardware(binary as string, espruinoFiles(buildEspruino().code));
    });

    siegeTests({ makeHardware: () => hardware, seeds: [1], movesAtRandom: 100 });
  },
);
