/** A device of the kit as the hardware of an attacked board. */
import type { LinkPort, LogLevel } from "@blindrelay/agent-sdk";
import { CuttableStorage, seededRandom } from "@blindrelay/agent-sdk/memory";
import {
  DEAD_NETWORK,
  type Hardware,
  type HardwareSurroundings,
  type Identity,
  type MakeHardware,
} from "../hostile-boards/hardware.ts";
import type { DevicePorts, DeviceUnderTest } from "./device.ts";

export type MakeDevice = (surroundings: DevicePorts) => DeviceUnderTest;

/** The name of the program among those that were loaded. */
export const ATTACKED_PROGRAM = "attacked";
const EXECUTED = "executed";

/** The program's log line contains the marker of the call. */
const markerOf = (message: string, fields: object | undefined): unknown =>
  (fields ?? JSON.parse(message.slice(EXECUTED.length))).marker;

class AttackedHardware implements Hardware {
  private readonly makeDevice: MakeDevice;
  private readonly surroundings: HardwareSurroundings;
  private readonly flash = new Map<string, string>();
  private storage = new CuttableStorage("erase", this.flash);
  private device: DeviceUnderTest | null = null;

  constructor(makeDevice: MakeDevice, surroundings: HardwareSurroundings) {
    this.makeDevice = makeDevice;
    this.surroundings = surroundings;
  }

  powerOn(network: LinkPort): void {
    this.device = this.makeDevice({
      timer: this.surroundings.timer,
      link: network,
      // The same in each life, as on boards: only the boot count makes starts differ.
      random: seededRandom(1),
      storage: this.storage,
      log: (_level: LogLevel, message, fields) => {
        if (message.startsWith(EXECUTED)) this.surroundings.executed(markerOf(message, fields));
      },
      onState: () => undefined,
    });
  }

  provision({ agentToken, seed }: Identity): void {
    this.device?.provision(agentToken, seed);
  }

  start({ version: packetVersion, ...identity }: Identity): void {
    this.device?.start(
      { ...identity, packetVersion, url: "ws://relay.test/wss" },
      ATTACKED_PROGRAM,
    );
  }

  emit(event: string, data: object): void {
    this.device?.emit(event, data);
  }

  powerOff(): void {
    this.device?.end();
    this.device = null;
  }

  startWithCut(identity: Identity, step: number): void {
    this.storage.cutAfter(step);
    this.powerOn(DEAD_NETWORK);
    try {
      this.start(identity);
    } catch {
      // Often the power is cut during the start itself.
    }
    this.powerOff();
    this.storage.cutAfter(null);
  }

  eraseFlash(): void {
    this.flash.clear();
  }

  damageSlot(slot: number, gone: boolean): void {
    const name = `boot.${slot}`;
    if (gone) this.flash.delete(name);
    else this.flash.set(name, "\xff");
  }

  async end(): Promise<void> {
    this.powerOff();
  }
}

export const attackedHardware =
  (makeDevice: MakeDevice): MakeHardware =>
  (surroundings) =>
    new AttackedHardware(makeDevice, surroundings);
