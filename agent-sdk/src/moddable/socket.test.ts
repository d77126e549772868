/**
 * The bugs: a frame head split over two segments, with a write in between, made the SDK's client
 * stop receiving; a certificate that the SDK's TLS refused ended the program.
 */
import { expect, it } from "vitest";
import type { EcmaSocketOptions } from "./sdk.ts";
import { steadyNetwork, steadySocket } from "./socket.ts";

/** A socket of the SDK: `read` returns a byte or everything, depending on its format. */
class Socket {
  format = "buffer";
  readonly written: unknown[] = [];
  private readonly bytes: number[] = [0x81, 3, 97, 98, 99];

  read(count?: unknown): unknown {
    if (this.format === "number") return this.bytes.shift();
    return this.bytes.splice(0, (count as number | undefined) ?? this.bytes.length);
  }

  write(data: unknown): unknown {
    if (this.format !== "buffer") throw new Error("a number is wanted");
    return this.written.push(data);
  }
}

it("returns a byte if one is requested, whatever was written before", () => {
  const socket = new (steadySocket(Socket))();
  expect(socket.read()).toBe(0x81);
  socket.write("pong");
  expect(socket.read()).toBe(3);
  expect(socket.read(2)).toEqual([97, 98]);
  expect(socket.read()).toBe(99);
});

it("adds steady sockets to a network, and does not change one without sockets", () => {
  class io {
    read = (): undefined => undefined;
    write = (): number => 0;
    close = (): void => {};
  }
  const steady = steadyNetwork({ io, socket: { io: Socket } });
  expect(steady?.socket?.io.prototype).toBeInstanceOf(Socket);
  expect(steadyNetwork({ io })).toEqual({ io });
  expect(steadyNetwork(undefined)).toBe(null);
});

it("reports what TLS throws in a callback of its TCP socket as an error of the socket", () => {
  class Tcp {
    format = "buffer";
    readonly options: EcmaSocketOptions;
    constructor(options: EcmaSocketOptions) {
      this.options = options;
    }
    read = (): undefined => undefined;
    write = (): number => 0;
  }
  class Tls extends Tcp {
    readonly tcp: Tcp;
    constructor(options: EcmaSocketOptions & { readonly TCP: { readonly io: typeof Tcp } }) {
      super(options);
      this.tcp = new options.TCP.io({
        onReadable: () => {
          throw new Error("bad certificate");
        },
        onError: () => options.onError?.(),
      });
    }
  }
  const io = class {
    read = (): undefined => undefined;
    write = (): number => 0;
    close = (): void => {};
  };
  const socket = steadyNetwork({ io, socket: { io: Tls, TCP: { io: Tcp } } })?.socket;
  const errors: string[] = [];
  const Socket = socket?.io as unknown as typeof Tls;
  const tls = new Socket({ ...socket, onError: () => errors.push("error") } as never);
  tls.tcp.options.onReadable?.(1);
  expect(errors).toEqual(["error"]);
});
