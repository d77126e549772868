/** A TCP port for one program at a time, as plain bytes or over RFC 2217 (codec). */

import { createServer, type Server, type Socket } from "node:net";
import type { StatusLinesJson } from "@blindrelay/client-sdk/serial";
import { Failure } from "@blindrelay/protocol/command-line";
import { printStatus } from "../base/output.ts";
import type { LocalSide, Remote } from "./local-side.ts";

/** How a connection's bytes become the port's. */
export interface Codec {
  receive(bytes: Uint8Array): void;
  encode(bytes: Uint8Array): Uint8Array;
  changed(lines: StatusLinesJson): void;
  /** The remote port is back. */
  up(): void;
  end(): void;
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
  changed: () => undefined,
  up: () => undefined,
  end: () => undefined,
});

const KEEPALIVE_MS = 15_000;
/** A program that does not read its answers is not read any more, or it could ask without end. */
const MAX_ANSWERING_BYTES = 65_536;

class TcpSide implements LocalSide {
  where = "";
  private readonly remote: Remote;
  private readonly options: TcpOptions;
  private readonly server: Server;
  private socket: Socket | null = null;
  private codec: Codec | null = null;
  /** Bytes that the connection has not passed on yet. */
  private untaken = 0;
  /** The same of the codec's answers. */
  private answering = 0;

  constructor(remote: Remote, options: TcpOptions) {
    this.remote = remote;
    this.options = options;
    this.server = createServer((socket) => this.connected(socket));
  }

  listen(): Promise<void> {
    const { host, port, scheme } = this.options;
    return new Promise((resolve, reject) => {
      this.server.once("error", (error: NodeJS.ErrnoException) => {
        const why = error.code === "EADDRINUSE" ? "another program listens there" : error.message;
        reject(new Failure("usage", `cannot listen on ${host}:${port}: ${why}`, error));
      });
      this.server.listen({ host, port }, () => {
        const address = this.server.address();
        const bound = typeof address === "object" && address !== null ? address.port : port;
        this.where = `${scheme}://${host.includes(":") ? `[${host}]` : host}:${bound}`;
        resolve();
      });
    });
  }

  deliver(bytes: Uint8Array): void {
    const { socket, codec, remote } = this;
    const { length } = bytes;
    // As on an unconnected cable.
    if (socket === null || codec === null) {
      remote.taken(length);
      return;
    }
    this.untaken += length;
    socket.write(codec.encode(bytes), () => {
      // The end of a connection takes everything; see `connected`.
      if (this.socket !== socket) return;
      this.untaken -= length;
      remote.taken(length);
    });
  }

  writable(): void {
    if (this.isReading) this.socket?.resume();
  }

  up(): void {
    this.codec?.up();
  }

  down(): void {
    if (this.options.closesOnLoss) this.socket?.destroy();
  }

  changed(lines: StatusLinesJson): void {
    this.codec?.changed(lines);
  }

  async close(): Promise<void> {
    this.socket?.destroy();
    if (this.server.listening) await new Promise((resolve) => this.server.close(resolve));
  }

  /** Whether more may come from the program. Bytes of the device that it leaves do not matter. */
  private get isReading(): boolean {
    return this.remote.room > 0 && this.answering < MAX_ANSWERING_BYTES;
  }

  private answer(socket: Socket, bytes: Uint8Array): void {
    this.answering += bytes.length;
    socket.write(bytes, () => {
      if (this.socket !== socket) return;
      this.answering -= bytes.length;
      this.writable();
    });
  }

  private connected(socket: Socket): void {
    socket.on("error", () => undefined);
    const isClosed = this.options.closesOnLoss && !this.remote.isUp;
    if (this.socket !== null || isClosed) {
      printStatus(
        `${this.where}: ${isClosed ? "the port is away" : "in use"}; a connection was closed`,
      );
      socket.destroy();
      return;
    }
    this.socket = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEPALIVE_MS);
    this.answering = 0;
    const codec = this.options.codec(this.remote, (bytes) => {
      if (!socket.destroyed) this.answer(socket, bytes);
    });
    this.codec = codec;
    socket.on("data", (bytes: Uint8Array) => {
      // Its answers go out together.
      socket.cork();
      codec.receive(bytes);
      socket.uncork();
      if (!this.isReading) socket.pause();
    });
    // A program that is done sending may still read.
    socket.on("end", () => socket.destroy());
    socket.on("close", () => {
      codec.end();
      if (this.socket !== socket) return;
      this.socket = null;
      this.codec = null;
      const { untaken } = this;
      this.untaken = 0;
      this.remote.taken(untaken);
    });
  }
}

/** Listens. Rejects with a Failure (usage). */
export const openTcp = async (remote: Remote, options: TcpOptions): Promise<LocalSide> => {
  const side = new TcpSide(remote, options);
  await side.listen();
  return side;
};
