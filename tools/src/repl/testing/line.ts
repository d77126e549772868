/**
 * A port connected to a double in this process: bytes and XOFF arrive at once, so that only the
 * writer can cause losses, however busy the machine is.
 */
import { Duplex } from "node:stream";
import type { Port } from "@blindrelay/agent-sdk/board";
import type { EspruinoDouble } from "./double.ts";

export const lineTo = (double: EspruinoDouble): Port => {
  const far = new Duplex({
    read: () => undefined,
    write: (bytes: Buffer, _encoding, done) => {
      port.events.received(bytes);
      done();
    },
  });
  const port: Port = {
    name: "a line",
    events: { received: () => undefined, closed: () => undefined },
    write: async (bytes) => {
      far.emit("data", Buffer.from(bytes));
    },
    close: async () => {
      far.destroy();
    },
  };
  double.connect(far);
  return port;
};
