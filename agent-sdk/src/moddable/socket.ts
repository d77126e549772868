/**
 * A socket whose format need not be remembered. Moddable's WebSocket client (SDK 8.2.3) reads frame
 * heads byte by byte in the format "number", and sets "buffer" at every write: a write between two
 * segments that split a head makes it take all that came for one byte, and it never hears again.
 * Here a read without a count gives a byte, and one with a count gives a buffer, as that client
 * means them.
 */
import type { EcmaNetwork, EcmaSocketClass } from "./sdk.ts";

export const steadySocket = (Socket: EcmaSocketClass): EcmaSocketClass =>
  class extends Socket {
    override read(count?: unknown): unknown {
      this.format = count === undefined ? "number" : "buffer";
      return count === undefined ? super.read() : super.read(count);
    }

    override write(data: unknown): unknown {
      this.format = "buffer";
      return super.write(data);
    }
  };

/** The same network over such sockets; null for none. */
export const steadyNetwork = (network: EcmaNetwork | undefined): EcmaNetwork | null => {
  if (network === undefined) return null;
  const socket = network.socket;
  return socket === undefined
    ? network
    : { ...network, socket: { ...socket, io: steadySocket(socket.io) } };
};
