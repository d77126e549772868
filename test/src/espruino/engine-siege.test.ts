/** The malicious relay against the built Espruino file on a real Espruino, where ESPRUINO_BIN names one. */
import { beforeAll, describe, expect, it } from "vitest";
import { buildEspruino } from "../../../agent-sdk/build/espruino.ts";
import { play } from "../adversary/moves.ts";
import { type EngineHardware, engineHardware } from "../siege/engine-hardware.ts";
import { espruinoFiles } from "../siege/espruino-board.ts";
import type { Surroundings } from "../siege/hardware.ts";
import { randomHistory } from "../siege/histories.ts";
import { Siege } from "../siege/siege.ts";
import { siegeTests } from "../siege/siege-tests.ts";
import { binary, whySkipped } from "./engine.ts";

/** Moves after which a board begins with empty memory. */
const STARTS = ["restart", "cutPower", "loseMedium", "damageSlot"];
/** Variables; a session held takes some sixty. */
const SLACK = 20;

describe.skipIf(binary === null)(
  `agents on a real Espruino behind a malicious relay${whySkipped(binary, "ESPRUINO_BIN")}`,
  { timeout: 600_000 },
  () => {
    let hardware: (surroundings: Surroundings) => EngineHardware;
    beforeAll(async () => {
      hardware = await engineHardware(binary as string, espruinoFiles(buildEspruino().code));
    });

    siegeTests({ makeHardware: () => hardware, seeds: [1], movesAtRandom: 100 });

    it("use no more memory after attacks through which they stay on", async () => {
      const boards: EngineHardware[] = [];
      const siege = new Siege((surroundings) => {
        const board = hardware(surroundings);
        boards.push(board);
        return board;
      }, 3);
      siege.mustRecover();
      const before = boards.map((board) => board.variablesInUse());
      play(
        siege,
        randomHistory(77, 300).filter(([name]) => !STARTS.includes(name)),
      );
      siege.mustRecover();
      expect(siege.violations).toEqual([]);
      for (const [i, board] of boards.entries())
        expect(board.variablesInUse()).toBeLessThanOrEqual((before[i] as number) + SLACK);
      await siege.end();
    });
  },
);
