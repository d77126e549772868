/** A board whose agent is the built Espruino file in the subset check. */
import type { LinkPort } from "@blindrelay/agent-sdk";
import { linkWire } from "@blindrelay/agent-sdk/engines";
import { LOAD } from "@blindrelay/agent-sdk/testing/build/boot";
import { EspruinoFlash } from "@blindrelay/agent-sdk/testing/espruino-flash";
import { SubsetBoard } from "@blindrelay/agent-sdk/testing/espruino-subset";
import { wireNet } from "@blindrelay/agent-sdk/testing/wire-net";
import { configOf, type EspruinoFiles, SLOTS, START, tellsExecuted } from "./espruino-board.ts";
import {
  DEAD_NETWORK,
  type Hardware,
  type HardwareSurroundings,
  type Identity,
  type MakeHardware,
} from "./hardware.ts";

class SubsetHardware implements Hardware {
  private readonly surroundings: HardwareSurroundings;
  private readonly flash: EspruinoFlash;
  private life: SubsetBoard | null = null;

  constructor(files: EspruinoFiles, surroundings: HardwareSurroundings) {
    this.surroundings = surroundings;
    this.flash = new EspruinoFlash(new Map(Object.entries(files)));
  }

  powerOn(network: LinkPort): void {
    const { timer, executed } = this.surroundings;
    this.life = new SubsetBoard(this.flash.files, {
      storage: this.flash,
      timer,
      net: wireNet(linkWire(network), timer),
      print: tellsExecuted(executed),
    });
    this.life.evaluate(LOAD);
  }

  provision(identity: Identity): void {
    this.flash.files.set("blindrelay.json", configOf(identity));
    this.life?.evaluate('require("blindrelay").provision()');
  }

  start(identity: Identity): void {
    this.flash.files.set("blindrelay.json", configOf(identity));
    this.life?.evaluate(START);
  }

  emit(event: string, data: object): void {
    this.life?.evaluate(`agent.emit(${JSON.stringify(event)}, ${JSON.stringify(data)})`);
  }

  powerOff(): void {
    this.life?.powerOff();
    this.life = null;
  }

  startWithCut(identity: Identity, step: number): void {
    this.powerOn(DEAD_NETWORK);
    this.flash.cutAfter(step);
    try {
      this.start(identity);
    } catch {
      // Often the power is cut during the start itself.
    }
    this.powerOff();
    this.flash.cutAfter(null);
  }

  eraseFlash(): void {
    for (const slot of SLOTS) this.flash.files.delete(slot);
  }

  damageSlot(slot: number, gone: boolean): void {
    const name = SLOTS[slot] as string;
    if (gone) this.flash.files.delete(name);
    else this.flash.files.set(name, "\xff");
  }

  async end(): Promise<void> {
    this.powerOff();
  }
}

export const subsetHardware =
  (files: EspruinoFiles): MakeHardware =>
  (surroundings) =>
    new SubsetHardware(files, surroundings);
