/**
 * Espruino's `require("net")` over node:net: byte strings, listeners by `on`, `drain`, an `end`
 * that throws on a destroyed socket, and optionally a `connect` that throws if nobody listens.
 */
import { connect as connectNode, type Socket } from "node:net";
import type { EspruinoSocket, EspruinoSockets } from "../espruino/board.ts";

export interface NetOptions {
  /** Throws from inside `connect`, as Espruino does if it fails immediately. */
  readonly throws?: boolean;
  /** Cuts received data into pieces of these lengths, in turn. */
  readonly pieces?: readonly number[];
  /** Every write reports that it was queued; `drain` follows. */
  readonly slow?: boolean;
}

/** Received data, in pieces whose lengths repeat. */
const cut = (data: string, lengths: readonly number[]): string[] => {
  const pieces: string[] = [];
  for (let at = 0, i = 0; at < data.length; i++) {
    const length = lengths[i % lengths.length] as number;
    pieces.push(data.slice(at, at + length));
    at += length;
  }
  return pieces;
};

const overSocket = (socket: Socket, options: NetOptions): EspruinoSocket => {
  let gone = false;
  socket.on("close", () => {
    gone = true;
  });
  return {
    on(event: string, listener: (value: never) => void): void {
      const call = listener as (value?: unknown) => void;
      if (event === "data") {
        socket.on("data", (data: Buffer) => {
          const text = data.toString("latin1");
          for (const piece of options.pieces ? cut(text, options.pieces) : [text]) call(piece);
        });
      } else if (event === "error") {
        socket.on("error", (error) => call({ code: -1, message: error.message }));
      } else {
        socket.on(event, () => call());
      }
    },
    write(data: string): boolean {
      if (gone) throw new Error("Function not found");
      const taken = socket.write(data, "latin1");
      if (options.slow && taken) setImmediate(() => socket.emit("drain"));
      return taken && !options.slow;
    },
    end(): void {
      if (gone) throw new Error("Function not found");
      socket.end();
    },
  };
};

/** The stand-in for the module. */
export const espruinoNet = (options: NetOptions = {}): EspruinoSockets => ({
  connect(target, connected) {
    if (options.throws) throw new Error("Unable to connect");
    const socket = connectNode(target.port, target.host, connected);
    socket.setNoDelay(true);
    return overSocket(socket, options);
  },
});
