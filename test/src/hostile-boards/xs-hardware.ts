/** A board whose agent runs in the real XS engine. */
import type { LinkPort } from "@blindrelay/agent-sdk";
import { linkWire, MemoryPreference, XsDevice } from "@blindrelay/agent-sdk/engines";
import {
  DEAD_NETWORK,
  type Hardware,
  type HardwareSurroundings,
  type Identity,
  type MakeHardware,
} from "./hardware.ts";

const MAX_COMPUTE = 2e8;
/** The name of the program among those in the script. */
const PROGRAM = "attacked";

/** Flash that loses power at a certain write; ESP32 erases a value before it writes the new one. */
class CuttablePreference extends MemoryPreference {
  /** Writes until the power cut; below 0: never. */
  private left = -1;
  private erases = false;

  cutAfter(writes: number, erases: boolean): void {
    this.left = writes;
    this.erases = erases;
  }

  powerIsBack(): void {
    this.left = -1;
  }

  override set(domain: string, key: string, value: ArrayBuffer): void {
    if (this.left === 0) {
      if (this.erases) this.values.delete(`${domain}/${key}`);
      this.erases = false;
      throw new Error("no power");
    }
    if (this.left > 0) this.left--;
    super.set(domain, key, value);
  }
}

class XsHardware implements Hardware {
  private readonly engine: string;
  private readonly script: string;
  private readonly surroundings: HardwareSurroundings;
  private readonly preference = new CuttablePreference();
  private device: XsDevice | null = null;
  /** Processes of lives that ended, to be waited for. */
  private readonly ends: Promise<void>[] = [];

  constructor(engine: string, script: string, surroundings: HardwareSurroundings) {
    this.engine = engine;
    this.script = script;
    this.surroundings = surroundings;
  }

  powerOn(network: LinkPort): void {
    this.device = new XsDevice({
      engine: this.engine,
      script: this.script,
      timer: this.surroundings.timer,
      connect: linkWire(network),
      preference: this.preference,
      maxCompute: MAX_COMPUTE,
      log: (_level, message, fields) => {
        if (message !== "executed") return;
        this.surroundings.executed((fields as { readonly marker?: unknown }).marker);
      },
    });
  }

  provision({ agentToken, seed }: Identity): void {
    this.device?.provision(agentToken, seed);
  }

  start({ version: packetVersion, ...identity }: Identity): void {
    this.device?.start({ ...identity, packetVersion, url: "ws://relay.test/wss" }, PROGRAM);
  }

  emit(event: string, data: object): void {
    this.device?.emit(event, data);
  }

  powerOff(): void {
    if (this.device !== null) this.ends.push(this.device.end());
    this.device = null;
  }

  startWithCut(identity: Identity, step: number): void {
    this.preference.cutAfter(step % 7, step % 2 === 0);
    this.powerOn(DEAD_NETWORK);
    try {
      this.start(identity);
    } catch {
      // Often the power is cut during the start itself.
    }
    this.powerOff();
    this.preference.powerIsBack();
  }

  eraseFlash(): void {
    this.preference.values.clear();
  }

  damageSlot(slot: number, gone: boolean): void {
    for (const key of [...this.preference.values.keys()]) {
      if (!key.includes(`boot.${slot}.`)) continue;
      if (gone) this.preference.values.delete(key);
      else this.preference.values.set(key, new Uint8Array([0, 255]).buffer);
    }
  }

  async end(): Promise<void> {
    this.powerOff();
    await Promise.all(this.ends);
  }
}

/**
 * `engine`: from findXsEngine; `script`: from deviceScript, with the program "attacked" in it.
 */
export const xsHardware =
  (engine: string, script: string): MakeHardware =>
  (surroundings) =>
    new XsHardware(engine, script, surroundings);
