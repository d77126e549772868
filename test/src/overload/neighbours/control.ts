/**
 * Round trips through a process that only forwards bytes, beside the relay and under the same
 * attack: the effect of the machine's load alone.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** About as long as the relay's round trips. */
const MESSAGE = Buffer.alloc(120, "x");

export class Control {
  readonly #child: ChildProcess;
  readonly #client: Socket;
  readonly #agent: Socket;
  #times: number[] = [];

  private constructor(child: ChildProcess, client: Socket, agent: Socket) {
    this.#child = child;
    this.#client = client;
    this.#agent = agent;
    agent.pipe(agent);
  }

  static async start(): Promise<Control> {
    const child = fork(import.meta.filename, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const [port] = await Promise.race([
      once(child, "message"),
      once(child, "exit").then(() => {
        throw new Error("the control did not start");
      }),
    ]);
    const sockets = [1, 2].map(() => connect({ port, host: "127.0.0.1", noDelay: true }));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    return new Control(child, ...(sockets as [Socket, Socket]));
  }

  /** Makes one round trip and stores its time. */
  async once(): Promise<void> {
    const started = performance.now();
    this.#client.write(MESSAGE);
    for (let bytes = 0; bytes < MESSAGE.length; ) {
      const [chunk] = (await once(this.#client, "data")) as [Buffer];
      bytes += chunk.length;
    }
    this.#times.push(performance.now() - started);
  }

  takeTimes(): number[] {
    const times = this.#times;
    this.#times = [];
    return times;
  }

  async stop(): Promise<void> {
    this.#client.destroy();
    this.#agent.destroy();
    this.#child.disconnect(); // which ends it
    await once(this.#child, "exit");
  }
}

const run = (): void => {
  const sockets: Socket[] = [];
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => undefined);
    sockets.push(socket);
    const [one, other] = sockets;
    if (other !== undefined) one?.pipe(other).pipe(one);
  });
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
  process.once("disconnect", () => process.exit());
};

if (import.meta.main && process.send !== undefined) run();
