/**
 * A pair of pseudo terminals connected by socat: a serial cable with one end opened by the code
 * under test, while the test simulates the device at the other. Pulling the cable ends socat.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Tests with real terminals are skipped visibly if this is false. CI has socat. */
export const HAS_SOCAT = spawnSync("socat", ["-V"]).status === 0;

export class Cable {
  readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-pty-"));
  /** The path that the code under test opens. */
  readonly path: string;
  /** Bytes that the device received, and its reaction. */
  received: (bytes: Buffer) => void = () => undefined;
  private server: Server | null = null;
  private socat: ChildProcess | null = null;
  private device: Socket | null = null;

  /** `path`: by default in a folder of its own. */
  constructor(path?: string) {
    this.path = path ?? join(this.folder, "tty");
  }

  /** Plugs in; resolves to the device's end. */
  async plug(): Promise<Socket> {
    this.server = createServer();
    const { server } = this;
    server.listen(join(this.folder, "device"));
    await once(server, "listening");
    const pty = `PTY,link=${this.path},raw,echo=0`;
    const args = ["-b", "4096", pty, `UNIX-CONNECT:${join(this.folder, "device")}`];
    this.socat = spawn("socat", args, { stdio: "ignore" });
    const [device] = (await once(server, "connection")) as [Socket];
    this.device = device;
    device.on("data", (bytes: Buffer) => this.received(bytes));
    device.on("error", () => undefined);
    return device;
  }

  /** Unplugs it: the terminal is gone for the process that has it open. */
  async pull(): Promise<void> {
    const { socat, server, device } = this;
    this.socat = null;
    device?.destroy();
    if (socat !== null && socat.exitCode === null && socat.signalCode === null) {
      socat.kill("SIGKILL");
      await once(socat, "exit");
    }
    // A killed socat leaves its link behind.
    rmSync(this.path, { force: true });
    if (server?.listening === true) await new Promise((resolve) => server.close(resolve));
    rmSync(join(this.folder, "device"), { force: true });
  }

  async end(): Promise<void> {
    await this.pull();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
