/**
 * For tests: a TCP proxy in front of a database that can freeze, cut every connection, or refuse.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface FlakyNetwork {
  readonly port: number;
  /** Nothing passes and nothing is closed, as if the database was stopped or unplugged. */
  freeze(): void;
  /** Ends every connection, as a restart does; accepts new ones. */
  cut(): void;
  /** Ends every connection, and each new one at once, as if the database was down. */
  refuse(): void;
  /** Restores normal operation. */
  heal(): void;
  close(): Promise<void>;
}

export const flakyNetwork = async (target: {
  host: string;
  port: number;
}): Promise<FlakyNetwork> => {
  const sockets = new Set<Socket>();
  let state: "well" | "frozen" | "refusing" = "well";
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    if (state === "frozen") socket.pause();
    return socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    track(near);
    if (state === "refusing") {
      near.destroy();
      return;
    }
    const far = track(connect(target.port, target.host));
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("data", (bytes) => to.write(bytes));
      from.on("close", () => to.destroy());
    }
    if (state === "frozen") for (const socket of [near, far]) socket.pause();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    freeze: () => {
      state = "frozen";
      for (const socket of sockets) socket.pause();
    },
    cut,
    refuse: () => {
      state = "refusing";
      cut();
    },
    heal: () => {
      state = "well";
      for (const socket of sockets) socket.resume();
    },
    close: async () => {
      cut();
      server.close();
      await once(server, "close");
    },
  };
};
