/** A TCP port for one program at a time, as plain bytes or over RFC 2217 (codec). */

import { type AddressInfo, createServer, type Socket } from "node:net";
import type { StatusLinesJson } from "@blindrelay/client-sdk/serial";
import { Failure } from "@blindrelay/protocol/command-line";
import { printStatus } from "../base/output.ts";
import type { LocalSide, Remote } from "./local-side.ts";

/** How a connection's bytes become the port's. */
export interface Codec {
  receive(bytes: Uint8Array): void;
  encode(bytes: Uint8Array): Uint8Array;
  changed?(lines: StatusLinesJson): void;
  /** The remote port is back. */
  up?(): void;
  end?(): void;
}

interface TcpOptions {
  readonly host: string;
  readonly port: number;
  /** The connection is closed when the remote port is lost. */
  readonly closesOnLoss: boolean;
  readonly codec: (remote: Remote, say: (bytes: Uint8Array) => void) => Codec;
  readonly scheme: "tcp" | "rfc2217";
}

export const plainCodec = (remote: Remote): Codec => ({
  receive: (bytes) => remote.write(bytes),
  encode: (bytes) => bytes,
});

const KEEPALIVE_MS = 15_000;
/** A program that does not read its answers is not read any more, or it could ask without end. */
const MAX_ANSWERING_BYTES = 65_536;

/** Listens. Rejects with a Failure. */
export const openTcp = async (remote: Remote, options: TcpOptions): Promise<LocalSide> => {
  const { host, port, scheme, closesOnLoss } = options;
  let socket: Socket | null = null;
  let codec: Codec | null = null;
  /** The program is done sending: it may still read, until the next one comes. */
  let isDone = false;
  /** Bytes that the connection has not passed on yet. */
  let untaken = 0;
  /** The same of the codec's answers. */
  let answering = 0;
  /** The device's lines, where the program has yet to read what it was told before. */
  let untold: StatusLinesJson | null = null;

  /** Whether more may come from the program. Bytes of the device that it leaves do not matter. */
  const isReading = (): boolean => remote.room > 0 && answering < MAX_ANSWERING_BYTES;
  const writable = (): void => {
    if (isReading()) socket?.resume();
  };

  /** The device can change its lines without end, too. */
  const tell = (): void => {
    if (untold === null || answering >= MAX_ANSWERING_BYTES) return;
    const lines = untold;
    untold = null;
    codec?.changed?.(lines);
  };

  const connected = (made: Socket): void => {
    made.on("error", () => undefined);
    const isClosed = closesOnLoss && !remote.isUp;
    if (isDone && !isClosed) leave();
    if (socket !== null || isClosed) {
      printStatus(`${where}: ${isClosed ? "the port is away" : "in use"}; a connection was closed`);
      made.destroy();
      return;
    }
    socket = made;
    isDone = false;
    made.setNoDelay(true);
    made.setKeepAlive(true, KEEPALIVE_MS);
    answering = 0;
    untold = null;
    const own = options.codec(remote, (bytes) => {
      if (made.destroyed) return;
      answering += bytes.length;
      made.write(bytes, () => {
        if (socket !== made) return;
        answering -= bytes.length;
        tell();
        writable();
      });
    });
    codec = own;
    made.on("data", (bytes: Uint8Array) => {
      // Its answers go out together.
      made.cork();
      own.receive(bytes);
      made.uncork();
      if (!isReading()) made.pause();
    });
    made.on("end", () => {
      // A tool that speaks RFC 2217 has nothing more to hear.
      if (scheme === "rfc2217") made.destroy();
      else if (socket === made) isDone = true;
    });
    made.on("close", () => {
      own.end?.();
      if (socket === made) leave();
    });
  };

  const leave = (): void => {
    socket?.destroy();
    socket = codec = null;
    isDone = false;
    const left = untaken;
    untaken = 0;
    remote.taken(left);
  };

  const server = createServer({ allowHalfOpen: true }, connected);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const isInUse = error.code === "EADDRINUSE";
      const why = isInUse ? "another program listens there" : error.message;
      const kind = isInUse ? "device" : "usage";
      reject(new Failure(kind, `cannot listen on ${host}:${port}: ${why}`, error));
    });
    server.listen({ host, port }, resolve);
  });
  const { port: bound } = server.address() as AddressInfo;
  const where = `${scheme}://${host.includes(":") ? `[${host}]` : host}:${bound}`;
  return {
    where,
    deliver: (bytes) => {
      const { length } = bytes;
      const to = socket;
      // As on an unconnected cable.
      if (to === null || codec === null) {
        remote.taken(length);
        return;
      }
      untaken += length;
      to.write(codec.encode(bytes), () => {
        // The end of a connection takes everything; see `connected`.
        if (socket !== to) return;
        untaken -= length;
        remote.taken(length);
      });
    },
    writable,
    up: () => codec?.up?.(),
    down: () => {
      if (closesOnLoss) socket?.destroy();
    },
    changed: (lines) => {
      untold = lines;
      tell();
    },
    close: async () => {
      socket?.destroy();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
};
