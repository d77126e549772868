/** TCP ports of 127.0.0.1 for servers that tests stop and start. */
import { randomInt } from "node:crypto";
import { connect } from "node:net";

/**
 * Below the ports that the system assigns (Linux: from 32768 on), so that no other program is given
 * it while the server is stopped.
 */
export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(15_000, 20_000);
    if (!(await answers(port))) return port;
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
