/**
 * A socket whose format need not be remembered. Moddable's WebSocket client (SDK 8.2.3) reads frame
 * heads byte by byte in the format "number", and sets "buffer" at every write: a write between two
 * segments that split a head makes it treat everything received as one byte, and it never receives
 * again. Here a read without a count returns a byte, and one with a count a buffer, as that client
 * expects.
 */
import type { EcmaNetwork, EcmaSocketClass, EcmaSocketOptions } from "./sdk.ts";

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

/**
 * A TCP socket below TLS. Moddable's TLS socket throws on a certificate that it refuses, in a
 * callback of the TCP socket, where nothing catches it: XS then ends the whole program.
 */
const guardedSocket = (Socket: EcmaSocketClass): EcmaSocketClass =>
  class extends Socket {
    constructor(options: EcmaSocketOptions) {
      const guard =
        (callback: ((count: number) => void) | undefined) =>
        (count: number): void => {
          try {
            callback?.(count);
          } catch {
            options.onError?.();
          }
        };
      super({
        ...options,
        onReadable: guard(options.onReadable),
        onWritable: guard(options.onWritable),
      });
    }
  };

/** The same network over such sockets; null if there is none. */
export const steadyNetwork = (network: EcmaNetwork | undefined): EcmaNetwork | null => {
  if (network === undefined) return null;
  const { socket } = network;
  if (socket === undefined) return network;
  const { io, TCP } = socket;
  const below = TCP === undefined ? {} : { TCP: { ...TCP, io: guardedSocket(TCP.io) } };
  return { ...network, socket: { ...socket, ...below, io: steadySocket(io) } };
};
