/** Devices behind TCP that a test simulates: any kind, and a port server. */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { escapeData, TelnetReader } from "../telnet.ts";

/** A server on loopback with connections handled by the test. */
export const serve = async (
  play: (socket: Socket) => void,
): Promise<{ server: Server; port: number }> => {
  const server = createServer(play);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return { server, port: typeof address === "object" && address !== null ? address.port : 0 };
};

/** A minimal port server: RFC 2217, recording its settings, and echoing data. */
export const portServer = (
  told: number[][],
  behaviour: {
    refuses?: boolean;
    textOnly?: boolean;
    maxRate?: number;
    silentOn?: readonly number[];
    /** This many bytes and requests come first. */
    floods?: number;
  } = {},
) =>
  serve((socket) => {
    const say = (...bytes: number[]) => socket.write(Uint8Array.from(bytes));
    const { textOnly = false, floods = 0 } = behaviour;
    if (floods > 0) {
      for (let n = 0; n < 100; n++) say(255, 253, 99);
      socket.write(Buffer.alloc(floods, "x"));
      socket.write("end");
    }
    const reader = new TelnetReader({
      data: (bytes) => socket.write(escapeData(bytes, textOnly)),
      asked: (verb, option) => {
        if (textOnly && option === 0) {
          if (verb === "will") say(255, 254, option);
          if (verb === "do") say(255, 252, option);
          return;
        }
        if (verb === "will") say(255, behaviour.refuses && option === 44 ? 254 : 253, option);
        if (verb === "do") say(255, 251, option);
      },
      told: (option, body) => {
        const [command = 0, ...values] = body;
        told.push([command, ...values]);
        if (behaviour.silentOn?.includes(command)) return;
        if (command === 5 && values[0] === 8) {
          // DTR on: here it also suspends the flow, until a break.
          say(255, 250, option, 108, 255, 240);
        }
        let answer = values;
        if (command === 1 && behaviour.maxRate !== undefined) answer = [0, 0, 0x25, 0x80];
        say(255, 250, option, command + 100, ...escapeData(Uint8Array.from(answer)), 255, 240);
        if (command === 11) say(255, 250, option, 107, 0xb0, 255, 240);
        if (command === 5 && values[0] === 5) say(255, 250, option, 109, 255, 240);
      },
    });
    reader.text = textOnly;
    socket.on("data", (bytes: Buffer) => reader.receive(bytes));
    socket.on("error", () => undefined);
  });

/** A device as a port server has it: its bytes, and the lines that reset it. */
export interface Wired {
  data(bytes: Uint8Array): void;
  lines(dtr: boolean, rts: boolean): void;
}

/** A port server whose device the test simulates; it accepts every setting. */
export const wired = (play: (say: (bytes: Uint8Array) => void) => Wired) =>
  serve((socket) => {
    let [dtr, rts] = [false, false];
    const say = (...bytes: number[]) => socket.write(Uint8Array.from(bytes));
    const device = play((bytes) => socket.write(escapeData(bytes)));
    const reader = new TelnetReader({
      data: (bytes) => device.data(bytes),
      asked: (verb, option) => {
        if (verb === "will") say(255, 253, option);
        if (verb === "do") say(255, 251, option);
      },
      told: (option, body) => {
        const [number = 0, ...values] = body;
        say(255, 250, option, number + 100, ...escapeData(Uint8Array.from(values)), 255, 240);
        if (number !== 5) return;
        const [value = 0] = values;
        if (value === 8 || value === 9) dtr = value === 8;
        else if (value === 11 || value === 12) rts = value === 11;
        else return;
        device.lines(dtr, rts);
      },
    });
    socket.on("data", (bytes: Buffer) => reader.receive(bytes));
    socket.on("error", () => undefined);
  });
