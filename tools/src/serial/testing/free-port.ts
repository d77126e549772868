/** A TCP port for a program that must be given one. */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Below the ports that systems assign by themselves (Linux from 32768 on), so that nobody gets it
 * between this and the program's start.
 */
const FROM = 20_000;
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
