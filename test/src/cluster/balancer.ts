/**
 * A minimal load balancer: TCP, to the ready nodes in turn. It requests `/health/ready` of each
 * node every 100 ms; open links stay where they are.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

const LOOK_MS = 100;

export interface Balancer {
  readonly url: string;
  /** The current addresses of the nodes. */
  targets: readonly string[];
  /** Ends the connections to a node, on both sides. */
  cut(target: string): void;
  close(): void;
}

export const startBalancer = async (): Promise<Balancer> => {
  let ready: string[] = [];
  let next = 0;
  const sockets = new Set<Socket>();
  const byTarget = new Map<Socket, string>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
  };
  const server = createServer((socket) => {
    keep(socket);
    next += 1;
    const target = ready[next % Math.max(1, ready.length)];
    if (target === undefined) {
      socket.destroy();
      return;
    }
    const { hostname, port } = new URL(target);
    const far = connect(Number(port), hostname);
    keep(far);
    byTarget.set(far, target);
    socket.pipe(far).pipe(socket);
    far.on("close", () => {
      byTarget.delete(far);
      socket.destroy();
    });
    socket.on("close", () => far.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const balancer: Balancer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    targets: [],
    cut: (target) => {
      for (const [far, at] of byTarget) if (at === target) far.destroy();
    },
    close: () => {
      clearInterval(timer);
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
  const isReady = async (target: string) => {
    try {
      const signal = AbortSignal.timeout(10 * LOOK_MS);
      return (await fetch(`${target}/health/ready`, { signal })).status === 200;
    } catch {
      return false;
    }
  };
  const look = async () => {
    const { targets } = balancer;
    const answers = await Promise.all(targets.map(isReady));
    ready = targets.filter((_, at) => answers[at]);
  };
  const timer = setInterval(look, LOOK_MS);
  return balancer;
};
