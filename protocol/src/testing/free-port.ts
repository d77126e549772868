/** For tests in this repository: TCP ports of 127.0.0.1 for programs that must be given one. */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { connect, createServer } from "node:net";

/**
 * Below the ports that systems assign by themselves (Linux: from 32768 on), so that nobody gets it
 * before the program starts, nor while it is stopped.
 */
const FROM = 15_000;
const TO = 32_000;

export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(FROM, TO);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
};

/** Whether something listens there. */
export const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
