/** The malicious relay against agents in the real XS engine. */
import { beforeAll, describe } from "vitest";
import { hostileRelayTests } from "../hostile-boards/hostile-relay-tests.ts";
import { xsHardware } from "../hostile-boards/xs-hardware.ts";
import { engine, makeScript, whySkipped, withoutEngine } from "./engine.ts";

describe.skipIf(withoutEngine)(`agents in XS behind a malicious relay${whySkipped}`, () => {
  let script: string;
  beforeAll(async () => {
    script = await makeScript();
  }, 600_000);

  hostileRelayTests({
    makeHardware: () => xsHardware(engine, script),
    seeds: [1, 2, 3],
    movesAtRandom: 150,
  });
});
