/**
 * A board in QEMU: Espruino's own firmware for a Cortex-M4, in the image that ESPRUINO_ARM names
 * (CONTRIBUTING.md says what it must be). Console and Serial2 are TCP ports of this machine, and
 * Storage is a file in the board's folder, so it survives a power cut.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { findEspruino } from "@blindrelay/agent-sdk/engines";

const QEMU = "qemu-system-arm";
const isHere = (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, QEMU)));

/** The image; null if there is none, or nothing to run it. */
export const armImage = isHere ? findEspruino("ESPRUINO_ARM") : null;

/** For a test's title. */
export const whyNoArm =
  armImage !== null
    ? ""
    : isHere
      ? " (skipped: ESPRUINO_ARM names no image)"
      : ` (skipped: there is no ${QEMU})`;

interface Chardev {
  readonly label: string;
  /** Such as "disconnected:tcp:127.0.0.1:45059,server=on". */
  readonly filename: string;
}

export class ArmBoard {
  private readonly image: string;
  private readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-arm-"));
  private child: ChildProcess | null = null;
  /** Of the console and Serial2; the same in each life. */
  private ports = [0, 0];

  constructor(image: string) {
    this.image = image;
  }

  /** As the commands take them. */
  get console(): string {
    return `tcp://127.0.0.1:${this.ports[0]}`;
  }

  get uart(): string {
    return `tcp://127.0.0.1:${this.ports[1]}`;
  }

  /** Resolves when its ports are open. */
  async powerOn(): Promise<void> {
    const line = (port: number): string[] => [
      "-serial",
      `tcp:127.0.0.1:${port},server=on,wait=off`,
    ];
    const machine = ["-M", "netduinoplus2", "-display", "none", "-kernel", this.image];
    const args = ["-semihosting-config", "enable=on,target=native", "-qmp", "stdio"];
    const child = spawn(QEMU, [...machine, ...args, ...this.ports.flatMap(line)], {
      cwd: this.folder,
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.child = child;
    const replies = createInterface(child.stdout)[Symbol.asyncIterator]();
    const ask = async <Reply>(execute: string): Promise<Reply> => {
      child.stdin.write(`${JSON.stringify({ execute })}\n`);
      for (;;) {
        const { value, done } = await replies.next();
        if (done === true) throw new Error(`${QEMU} ended`);
        const reply = JSON.parse(value);
        if ("return" in reply) return reply.return;
      }
    };
    await ask("qmp_capabilities");
    const devices = await ask<Chardev[]>("query-chardev");
    this.ports = ["serial0", "serial1"].map((label) => {
      const { filename = "" } = devices.find((device) => device.label === label) ?? {};
      return Number(/:(\d+),/.exec(filename)?.[1]);
    });
  }

  /** Waits for its prompt; returns its variables. */
  async variables(): Promise<number> {
    const socket = connect(this.ports[0] as number, "127.0.0.1");
    const ask = (): boolean => socket.write("\nprint('of',process.memory().total)\n");
    const asking = setInterval(ask, 200);
    let said = "";
    for await (const bytes of socket) {
      said += bytes;
      if (/^of \d+\r/m.test(said)) break; // which closes the socket
    }
    clearInterval(asking);
    return Number(/^of (\d+)/m.exec(said)?.[1]);
  }

  async cutPower(): Promise<void> {
    if (this.child === null) return;
    const over = this.child.exitCode === null ? once(this.child, "exit") : null;
    this.child.kill("SIGKILL");
    await over;
    this.child = null;
  }

  /** Ends it, and forgets what it has stored. */
  async end(): Promise<void> {
    await this.cutPower();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
