/** A board whose agent runs on the emulated chip (agent-sdk/chip). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Link, LinkPort } from "@blindrelay/agent-sdk";
import { messageBytes } from "@blindrelay/agent-sdk/embedded";
import type { Chip } from "@blindrelay/agent-sdk/testing/chip/build";
import { ChipWorker } from "@blindrelay/agent-sdk/testing/chip/worker";
import {
  DEAD_NETWORK,
  type Hardware,
  type HardwareSurroundings,
  type Identity,
  type MakeHardware,
} from "./hardware.ts";

/** RFC 6455 section 7.4.1: message too big. */
const TOO_BIG = 1009;

interface ChipDevice {
  readonly chip: Chip;
  /** With program.ts in it. */
  readonly image: string;
  readonly limits: { readonly maxPlaintext: number; readonly limits: object };
}

class ChipHardware implements Hardware {
  private readonly device: ChipDevice;
  private readonly surroundings: HardwareSurroundings;
  private readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-attacked-"));
  private readonly flash = join(this.folder, "flash");
  private readonly maxMessage: number;
  private network: LinkPort = DEAD_NETWORK;
  private readonly links = new Map<number, Link>();
  private worker: ChipWorker | null = null;
  private alarm: unknown = null;
  /** Processes of lives that ended, to be waited for. */
  private readonly ends: Promise<void>[] = [];

  constructor(device: ChipDevice, surroundings: HardwareSurroundings) {
    this.device = device;
    this.surroundings = surroundings;
    this.maxMessage = messageBytes(device.limits.maxPlaintext);
  }

  powerOn(network: LinkPort, cut = 0): void {
    const { chip, image } = this.device;
    this.network = network;
    this.worker = new ChipWorker({
      ...{ chip, image, flash: this.flash, cut },
      heard: (kind, body) => this.heard(kind, body),
    });
  }

  provision({ agentToken }: Identity): void {
    this.tell("provision", agentToken);
  }

  start({ version: packetVersion, ...identity }: Identity): void {
    this.tell("start", JSON.stringify({ ...this.device.limits, ...identity, packetVersion }));
  }

  emit(_event: string, data: object): void {
    this.tell("emit", JSON.stringify(data));
  }

  powerOff(): void {
    this.surroundings.timer.clear(this.alarm);
    if (this.worker !== null) this.ends.push(this.worker.end());
    this.worker = null;
    this.links.clear();
  }

  startWithCut(identity: Identity, step: number): void {
    this.powerOn(DEAD_NETWORK, step);
    try {
      this.start(identity);
    } catch {
      // Often the power is cut during the start itself.
    }
    this.powerOff();
  }

  eraseFlash(): void {
    rmSync(this.flash, { force: true });
  }

  damageSlot(slot: number, gone: boolean): void {
    this.powerOn(DEAD_NETWORK);
    this.tell(gone ? "lose" : "damage", `${slot}`);
    this.powerOff();
  }

  async end(): Promise<void> {
    this.powerOff();
    await Promise.all(this.ends);
    rmSync(this.folder, { recursive: true, force: true });
  }

  private tell(kind: string, body = ""): void {
    const { timer } = this.surroundings;
    const due = this.worker?.command(kind, timer.now(), body) ?? -1;
    timer.clear(this.alarm);
    if (due >= 0) this.alarm = timer.set(Math.max(0, due - timer.now()), () => this.tell("fire"));
  }

  private heard(kind: string, body: string): void {
    const [id = "", ...words] = body.split(" ");
    const rest = words.join(" ");
    if (kind === "executed") this.surroundings.executed(JSON.parse(body).marker);
    else if (kind === "connect") this.connect(Number(body));
    else if (kind === "send") this.links.get(Number(id))?.send(rest);
    else if (kind === "close") this.links.get(Number(id))?.close(Number(words[0]), "");
  }

  private connect(id: number): void {
    const life = this.worker;
    const event = (kind: string, body: string): void => {
      if (this.worker === life) this.tell(kind, body);
    };
    const link = this.network.connect("ws://relay.test/wss", {
      opened: () => event("opened", `${id}`),
      received: (text) => {
        // As the bridge does: more than the device said it can take never reaches its line.
        if (Buffer.byteLength(text) > this.maxMessage) link.close(TOO_BIG, "message too large");
        else event("received", `${id} ${text}`);
      },
      closed: (code, reason) => event("closed", `${id} ${code} ${reason}`),
    });
    this.links.set(id, link);
  }
}

export const chipHardware =
  (device: ChipDevice): MakeHardware =>
  (surroundings) =>
    new ChipHardware(device, surroundings);
