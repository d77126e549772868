/** A way between a process and a server: TCP with a delay, which can be cut. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

export class SlowWay {
  private readonly target: URL;
  private readonly delayMs: number;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  /** Nothing gets through, and no connection is accepted. */
  private isCut = false;

  /** `target`: an http URL. `delayMs`: each way. */
  constructor(target: string, delayMs = 0) {
    this.target = new URL(target);
    this.delayMs = delayMs;
    this.server = createServer((socket) => this.carry(socket));
  }

  /** Resolves to its own http URL. */
  async open(): Promise<string> {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    const address = this.server.address();
    if (address === null || typeof address === "string") throw new Error("no address");
    return `http://127.0.0.1:${address.port}`;
  }

  /** Breaks every connection; new ones fail until `mend`. */
  cut(): void {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend(): void {
    this.isCut = false;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private carry(from: Socket): void {
    if (this.isCut) {
      from.destroy();
      return;
    }
    const to = connect({ host: this.target.hostname, port: Number(this.target.port) });
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      this.sockets.add(one);
      one.setNoDelay(true);
      one.on("data", (bytes) => this.later(() => other.destroyed || other.write(bytes)));
      one.on("error", () => undefined);
      one.on("close", () => {
        this.sockets.delete(one);
        this.later(() => other.destroy());
      });
    }
  }

  private later(run: () => void): void {
    if (this.delayMs === 0) run();
    else setTimeout(run, this.delayMs);
  }
}
