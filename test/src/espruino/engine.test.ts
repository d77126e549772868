/** The built file on a real Espruino, where ESPRUINO_BIN names one; and on one as small as a Puck.js. */
import { describe } from "vitest";
import { conversationTests } from "./conversation.ts";
import { binary, EngineBoard, smallBinary, whySkipped } from "./engine.ts";

const LIMITS = { timeout: 60_000 };

describe.skipIf(binary === null)(
  `on a real Espruino${whySkipped(binary, "ESPRUINO_BIN")}`,
  LIMITS,
  () =>
    conversationTests({
      makeBoard: () => new EngineBoard(binary as string),
      runtime: /^espruino 2v/,
      small: false,
    }),
);

describe.skipIf(smallBinary === null)(
  `on a real Espruino with 2,630 variables${whySkipped(smallBinary, "ESPRUINO_BIN_2630")}`,
  LIMITS,
  () =>
    conversationTests({
      makeBoard: () => new EngineBoard(smallBinary as string),
      runtime: /^espruino 2v/,
      small: true,
    }),
);
