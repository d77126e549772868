/** A real pty with a double or a real Espruino at its far end: socat connects the two. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
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

/** A cable between a pty with the given path and a double. */
export class Cable {
  private readonly server: Server;
  /** The path of the pty. */
  readonly path: string;
  private socat: ChildProcess | null = null;
  private readonly sockets = new Set<Socket>();

  constructor(double: EspruinoDouble, path: string) {
    this.path = path;
    this.server = createServer((socket) => {
      socket.setNoDelay(true);
      this.sockets.add(socket);
      double.connect(socket);
    });
  }

  /** `tcp://…` of the same double, without the pty. */
  get tcp(): string {
    const address = this.server.address();
    if (typeof address !== "object" || address === null) throw new Error("not plugged in");
    return `tcp://127.0.0.1:${address.port}`;
  }

  async plugIn(): Promise<void> {
    if (!this.server.listening) {
      this.server.listen(0, "127.0.0.1");
      await once(this.server, "listening");
    }
    const plugged = once(this.server, "connection");
    this.socat = await startSocat(this.path, `${this.tcp.replace("tcp://", "TCP:")},nodelay`);
    await plugged;
  }

  /** The pty vanishes, as a USB port does. */
  async unplug(): Promise<void> {
    if (this.socat !== null) await endSocat(this.socat);
    this.socat = null;
  }

  async end(): Promise<void> {
    await this.unplug();
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
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
