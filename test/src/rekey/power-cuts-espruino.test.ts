/** The file for Espruino boards that take a new secret, in the subset check. */
import { linkWire } from "@blindrelay/agent-sdk/engines";
import { ManualTimer } from "@blindrelay/agent-sdk/memory";
import { LOAD } from "@blindrelay/agent-sdk/testing/build/boot";
import { buildEspruino } from "@blindrelay/agent-sdk/testing/build/espruino";
import { EspruinoFlash } from "@blindrelay/agent-sdk/testing/espruino-flash";
import { SubsetBoard } from "@blindrelay/agent-sdk/testing/espruino-subset";
import { wireNet } from "@blindrelay/agent-sdk/testing/wire-net";
import type { Version } from "@blindrelay/protocol/crypto";
import { describe } from "vitest";
import { configOf } from "../hostile-boards/espruino-board.ts";
import { type Medium, powerCutTests } from "./power-cuts.ts";
import { AGENT_ID, RELAY_TOKEN, Stage } from "./stage.ts";

const TURN_MS = 10;
const FILES = ["blindrelay", "blindrelay.json"];
const START = 'require("blindrelay").start(function () {})';

class FlashMedium implements Medium {
  readonly flash: EspruinoFlash;

  constructor(files: ReadonlyMap<string, string>) {
    this.flash = new EspruinoFlash(new Map(files));
  }

  get steps(): number {
    return this.flash.steps;
  }

  cutAfter(step: number): void {
    this.flash.cutAfter(step);
  }

  copy(): Medium {
    return new FlashMedium(this.flash.files);
  }

  texts(): string[] {
    return [...this.flash.files].flatMap(([name, text]) => (FILES.includes(name) ? [] : [text]));
  }
}

const sdks: { readonly [version: string]: string } = {
  "1": buildEspruino("1", false, true).stored,
  "2": buildEspruino("2", true, true).stored,
};

const boardOf = (medium: FlashMedium, timer: ManualTimer, stage: Stage): SubsetBoard =>
  new SubsetBoard(medium.flash.files, {
    storage: medium.flash,
    timer,
    net: wireNet(linkWire(stage.network), timer),
    print: () => undefined,
  });

const stageOf = (timer: ManualTimer): Stage => new Stage(timer, () => timer.advance(TURN_MS));

describe("Espruino", () => {
  powerCutTests({
    title: "Espruino",
    isThere: true,
    versions: ["1", "2"],
    load: async () => undefined,
    async provision(agentToken: string, version: Version) {
      const identity = { agentId: AGENT_ID, relayToken: RELAY_TOKEN, agentToken, version };
      const medium = new FlashMedium(
        new Map([
          ["blindrelay", sdks[version] as string],
          ["blindrelay.json", configOf(identity)],
        ]),
      );
      const timer = new ManualTimer();
      const board = boardOf(medium, timer, stageOf(timer));
      board.evaluate(`${LOAD}$br.provision()`);
      board.powerOff();
      return medium;
    },
    async live(medium, _configured, _version, act) {
      const timer = new ManualTimer();
      const stage = stageOf(timer);
      const board = boardOf(medium as FlashMedium, timer, stage);
      try {
        board.evaluate(`${LOAD}${START}`);
        await stage.online();
        await act(stage);
      } finally {
        board.powerOff();
      }
    },
  });
});
