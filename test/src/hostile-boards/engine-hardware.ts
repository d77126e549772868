/** A board whose agent is the built Espruino file on a real Espruino. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LinkPort } from "@blindrelay/agent-sdk";
import { linkWire } from "@blindrelay/agent-sdk/engines";
import { LOAD } from "@blindrelay/agent-sdk/testing/build/boot";
import { EspruinoDevice, FLASH_FILE } from "@blindrelay/agent-sdk/testing/espruino-device";
import { wireNet } from "@blindrelay/agent-sdk/testing/wire-net";
import { configOf, type EspruinoFiles, SLOTS, START, tellsExecuted } from "./espruino-board.ts";
import {
  DEAD_NETWORK,
  type Hardware,
  type HardwareSurroundings,
  type Identity,
} from "./hardware.ts";

const CHUNK_BYTES = 3000;

/** Code that writes a file to Storage, in pieces that fit into a board's memory. */
const writeFile = (name: string, content: string): string[] => {
  const { length } = content;
  return Array.from({ length: Math.ceil(length / CHUNK_BYTES) }, (_, i) => {
    const at = i * CHUNK_BYTES;
    const chunk = Buffer.from(content.slice(at, at + CHUNK_BYTES), "latin1").toString("base64");
    return `require("Storage").write("${name}", atob("${chunk}"), ${at}, ${length})`;
  });
};

const WHOLE_SLOT = /^blindrelay-boot 1 (\d+) [0-9a-f]{64} [0-9a-f]{8}\n$/;

const eraseFile = (name: string): string => `require("Storage").erase("${name}")`;

/**
 * A flash in the middle of a write, after `bytes` changed bytes. Espruino appends to a log until it
 * is full: lower addresses are written first.
 */
const torn = (before: Buffer, after: Buffer, bytes: number): Buffer => {
  const flash = Buffer.from(before);
  let left = bytes;
  for (let at = 0; at < flash.length && left > 0; at++) {
    if (flash[at] === after[at]) continue;
    flash[at] = after[at] as number;
    left--;
  }
  return flash;
};

export class EngineHardware implements Hardware {
  private readonly binary: string;
  private readonly surroundings: HardwareSurroundings;
  private readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-attacked-"));
  private readonly flash = join(this.folder, FLASH_FILE);
  private life: EspruinoDevice | null = null;
  /** Processes of lives that ended, to be waited for. */
  private readonly ends: Promise<void>[] = [];

  constructor(binary: string, flash: Uint8Array | null, surroundings: HardwareSurroundings) {
    this.binary = binary;
    this.surroundings = surroundings;
    if (flash !== null) writeFileSync(this.flash, flash);
  }

  powerOn(network: LinkPort): void {
    const { timer, executed } = this.surroundings;
    this.life = new EspruinoDevice({
      binary: this.binary,
      folder: this.folder,
      timer,
      net: wireNet(linkWire(network), timer),
      print: tellsExecuted(executed),
    });
    this.life.run(LOAD);
  }

  provision(identity: Identity): void {
    this.run(writeFile("blindrelay.json", configOf(identity)));
    this.life?.run('require("blindrelay").provision()');
  }

  start(identity: Identity): void {
    this.run(writeFile("blindrelay.json", configOf(identity)));
    this.life?.run(START);
  }

  emit(event: string, data: object): void {
    this.life?.run(`agent.emit(${JSON.stringify(event)}, ${JSON.stringify(data)})`);
  }

  powerOff(): void {
    if (this.life !== null) this.ends.push(this.life.powerOff());
    this.life = null;
  }

  startWithCut(identity: Identity, step: number): void {
    const before = readFileSync(this.flash);
    this.powerOn(DEAD_NETWORK);
    this.start(identity);
    this.powerOff();
    writeFileSync(this.flash, torn(before, readFileSync(this.flash), step));
  }

  eraseFlash(): void {
    this.alone(SLOTS.map(eraseFile));
  }

  damageSlot(slot: number, gone: boolean): void {
    const name = SLOTS[slot] as string;
    this.alone(gone ? [eraseFile(name)] : writeFile(name, "\xff"));
  }

  /** Bytes of its memory. */
  variablesInUse(): number {
    return this.life?.run("process.memory().usage") as number;
  }

  /** The highest count in a valid slot; 0 if there is none. */
  bootCount(): number {
    const texts = SLOTS.map((slot) => this.life?.run(`require("Storage").read("${slot}")`));
    const counts = texts.map((text) => WHOLE_SLOT.exec(String(text))?.[1]);
    return Math.max(0, ...counts.map((count) => Number(count ?? 0)));
  }

  /** Writes the files to an empty flash, and returns its contents. */
  install(files: EspruinoFiles): Uint8Array {
    this.alone(Object.entries(files).flatMap(([name, content]) => writeFile(name, content)));
    return readFileSync(this.flash);
  }

  async end(): Promise<void> {
    this.powerOff();
    await Promise.all(this.ends);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A life in which nothing but this code runs. */
  private alone(codes: readonly string[]): void {
    this.powerOn(DEAD_NETWORK);
    this.run(codes);
    this.powerOff();
  }

  private run(codes: readonly string[]): void {
    for (const code of codes) this.life?.run(code);
  }
}

/** `binary`: path of a real Espruino. */
export const engineHardware = async (
  binary: string,
  files: EspruinoFiles,
): Promise<(surroundings: HardwareSurroundings) => EngineHardware> => {
  const nowhere: HardwareSurroundings = {
    timer: { now: () => 0, set: () => null, clear: () => undefined },
    executed: () => undefined,
  };
  const first = new EngineHardware(binary, null, nowhere);
  const flash = first.install(files);
  await first.end();
  return (surroundings) => new EngineHardware(binary, flash, surroundings);
};
