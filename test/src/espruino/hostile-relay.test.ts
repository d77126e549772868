/** The malicious relay against the built Espruino file in the subset check. */
import { buildEspruino } from "@blindrelay/agent-sdk/testing/build/espruino";
import { describe } from "vitest";
import { espruinoFiles } from "../hostile-boards/espruino-board.ts";
import { hostileRelayTests } from "../hostile-boards/hostile-relay-tests.ts";
import { subsetHardware } from "../hostile-boards/subset-hardware.ts";

describe("agents in the subset check behind a malicious relay", () => {
  const files = espruinoFiles(buildEspruino("any").stored);
  hostileRelayTests({
    makeHardware: () => subsetHardware(files),
    seeds: [1, 2, 3, 4, 5, 6, 7, 8],
    movesAtRandom: 250,
  });
});
