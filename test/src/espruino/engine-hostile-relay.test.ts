/**
 * The malicious relay against the built Espruino file on a real Espruino, if ESPRUINO_BIN names
 * one.
 */
import { ManualTimer } from "@blindrelay/agent-sdk/memory";
import { buildEspruino } from "@blindrelay/agent-sdk/testing/build/espruino";
import { makeToken } from "@blindrelay/protocol";
import { beforeAll, describe, expect, it } from "vitest";
import { play } from "../adversary/moves.ts";
import { type EngineHardware, engineHardware } from "../hostile-boards/engine-hardware.ts";
import { espruinoFiles } from "../hostile-boards/espruino-board.ts";
import { DEAD_NETWORK, type HardwareSurroundings } from "../hostile-boards/hardware.ts";
import { muddledHistory, randomHistory } from "../hostile-boards/histories.ts";
import { hostileRelayTests } from "../hostile-boards/hostile-relay-tests.ts";
import { HostileStage } from "../hostile-boards/hostile-stage.ts";
import { binary, whySkipped } from "./engine.ts";

/** Moves after which a board restarts with empty memory. */
const STARTS = ["restart", "cutPower", "loseMedium", "undoRotation", "damageSlot"];
/** Variables, for longer numbers; a session takes some sixty, a link that is never freed 57. */
const SLACK = 40;

/**
 * Bytes of Storage, when one slot of the boot count is rewritten: an invalidated header, a header
 * and the text.
 */
const WRITE_BYTES = 4 + 32 + 98;
const IDENTITY = {
  agentId: "pump",
  relayToken: makeToken("agent", new Uint8Array(32)),
  agentToken: makeToken("e2e", new Uint8Array(32)),
  version: "2",
} as const;

describe.skipIf(binary === null)(
  `agents on a real Espruino behind a malicious relay${whySkipped(binary, "ESPRUINO_BIN")}`,
  { timeout: 600_000 },
  () => {
    let hardware: (surroundings: HardwareSurroundings) => EngineHardware;
    beforeAll(async () => {
      hardware = await engineHardware(binary as string, espruinoFiles(buildEspruino("any").stored));
    });

    hostileRelayTests({ makeHardware: () => hardware, seeds: [1], movesAtRandom: 100 });

    it("use no more memory after attacks through which they stay on", async () => {
      const boards: EngineHardware[] = [];
      const stage = new HostileStage((surroundings) => {
        const board = hardware(surroundings);
        boards.push(board);
        return board;
      }, 3);
      stage.mustRecover();
      const before = boards.map((board) => board.variablesInUse());
      // What is lost each time adds up; after one, a board may have a session more than before.
      for (const seed of [77, 78, 79]) {
        play(
          stage,
          randomHistory(seed, 300).filter(([name]) => !STARTS.includes(name)),
        );
        play(stage, muddledHistory());
        stage.mustRecover();
      }
      expect(stage.violations).toEqual([]);
      for (const [i, board] of boards.entries())
        expect(board.variablesInUse()).toBeLessThanOrEqual((before[i] as number) + SLACK);
      await stage.end();
    });

    it("count no start twice, wherever the write to their flash was interrupted", async () => {
      const board = hardware({ timer: new ManualTimer(), executed: () => undefined });
      board.powerOn(DEAD_NETWORK);
      board.provision(IDENTITY);
      let last = board.bootCount();
      board.powerOff();
      for (let bytes = 0; bytes < WRITE_BYTES; bytes += 5) {
        board.startWithCut(IDENTITY, bytes);
        board.powerOn(DEAD_NETWORK);
        const left = board.bootCount();
        expect(left).toBeGreaterThanOrEqual(last);
        board.start(IDENTITY);
        last = board.bootCount();
        expect(last).toBeGreaterThan(left);
        board.powerOff();
      }
      await board.end();
    });
  },
);
