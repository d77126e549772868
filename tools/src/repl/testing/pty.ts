/** A real pty with a double or a real Espruino at its far end: socat connects the two. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { Cable } from "../../serial/testing/pty.ts";
import type { EspruinoDouble } from "./double.ts";

const untilThere = async (path: string, socat: ChildProcess): Promise<void> => {
  while (!existsSync(path)) {
    if (socat.exitCode !== null) throw new Error(`socat made no ${path}`);
    await wait(10);
  }
};

const startSocat = async (link: string, far: string, cwd?: string): Promise<ChildProcess> => {
  const args = [`PTY,link=${link},raw,echo=0`, far];
  const socat = spawn("socat", args, { stdio: "ignore", ...(cwd === undefined ? {} : { cwd }) });
  await untilThere(link, socat);
  return socat;
};

const endSocat = async (socat: ChildProcess): Promise<void> => {
  if (socat.exitCode !== null || socat.signalCode !== null) return;
  const over = once(socat, "exit");
  socat.kill("SIGKILL");
  await over;
};

/** A cable with a double as its device. */
export class BoardCable extends Cable {
  private readonly double: EspruinoDouble;

  constructor(double: EspruinoDouble, path: string) {
    super(path);
    this.double = double;
  }

  override async plug(): Promise<Socket> {
    const device = await super.plug();
    this.double.connect(device);
    return device;
  }
}

/** A real Espruino (its Linux build) behind a pty; its flash is a file in `cwd`. */
export class RealEspruino {
  private readonly binary: string;
  private readonly cwd: string;
  private readonly link: string;
  private socat: ChildProcess | null = null;

  constructor(binary: string, cwd: string, link: string) {
    this.binary = binary;
    this.cwd = cwd;
    this.link = link;
  }

  async start(): Promise<void> {
    // With `exec`, the shell's id becomes Espruino's; it is written to a file, because socat does
    // not report it.
    const run = `SYSTEM:'echo $$ >pid && exec ${this.binary}',pty,raw,echo=0`;
    this.socat = await startSocat(this.link, run, this.cwd);
  }

  /** Espruino ignores SIGTERM when its pty is gone: it is ended by its id. */
  async end(): Promise<void> {
    const pid = Number(readFileSync(`${this.cwd}/pid`, "utf8"));
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // it had ended by itself
    }
    if (this.socat !== null) await endSocat(this.socat);
  }
}
