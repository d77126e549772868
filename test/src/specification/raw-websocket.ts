/**
 * WebSocket according to RFC 6455, over net.Socket alone: the opening handshake (section 4.1),
 * masked frames out and plain ones in (5.2), control frames (5.5), the close (7).
 */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** Section 1.3: the constant that an accepting server hashes with the key. */
const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export const TEXT = 0x1;
export const BINARY = 0x2;
export const CLOSE = 0x8;
export const PING = 0x9;
export const PONG = 0xa;

/** The stream ended without a close frame (section 7.1.5). */
const ABNORMAL = 1006;

// biome-ignore lint/suspicious/noExplicitAny: tests compare messages of any shape
export type Message = any;

export interface Closed {
  readonly closed: number;
}

export interface OpenOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether control pings are answered, as every library does automatically. */
  readonly answersControlPings?: boolean;
  /** PEM file with the certificate that a wss:// server must have. */
  readonly certificate?: string;
}

/** Resolves once the handshake is done; rejects with the status line if the server refuses it. */
export const openWebSocket = async (
  url: string,
  { headers = {}, answersControlPings = true, certificate }: OpenOptions = {},
): Promise<RawWebSocket> => {
  const { hostname, port, pathname, host } = new URL(url);
  const socket =
    certificate === undefined
      ? connect(Number(port), hostname)
      : connectTls({ port: Number(port), host: hostname, ca: readFileSync(certificate) });
  await once(socket, certificate === undefined ? "connect" : "secureConnect");
  socket.setNoDelay();
  const key = randomBytes(16).toString("base64");
  const lines = [
    `GET ${pathname} HTTP/1.1`,
    `Host: ${host}`,
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Key: ${key}`,
    "Sec-WebSocket-Version: 13",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  const { head, rest } = await readHead(socket);
  const [status = "", ...fields] = head.split("\r\n");
  const accept = fields.find((field) => /^sec-websocket-accept:/i.test(field))?.split(": ")[1];
  const expected = createHash("sha1").update(`${key}${ACCEPT_SUFFIX}`).digest("base64");
  if (!status.startsWith("HTTP/1.1 101 ") || accept !== expected) {
    socket.destroy();
    throw new Error(`no WebSocket: ${status}`);
  }
  return new RawWebSocket(socket, rest, answersControlPings);
};

const readHead = (socket: Socket): Promise<{ head: string; rest: Buffer }> =>
  new Promise((resolve, reject) => {
    let read = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      read = Buffer.concat([read, chunk]);
      const end = read.indexOf("\r\n\r\n");
      if (end < 0) return;
      socket.off("data", onData);
      socket.off("error", reject);
      socket.pause();
      resolve({ head: read.toString("latin1", 0, end), rest: read.subarray(end + 4) });
    };
    socket.on("data", onData);
    socket.once("error", reject);
  });

export class RawWebSocket {
  readonly socket: Socket;
  /** Opcodes of the received control frames, and the texts of the messages, in order. */
  readonly controls: number[] = [];
  readonly texts: string[] = [];
  readonly #answersControlPings: boolean;
  readonly #queue: (Message | Closed)[] = [];
  #wake: () => void = () => undefined;
  #read: Buffer;
  #closeCode = ABNORMAL;

  constructor(socket: Socket, rest: Buffer, answersControlPings: boolean) {
    this.socket = socket;
    this.#read = rest;
    this.#answersControlPings = answersControlPings;
    socket.on("data", (chunk: Buffer) => {
      this.#read = this.#read.length === 0 ? chunk : Buffer.concat([this.#read, chunk]);
      this.#takeFrames();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => this.#put({ closed: this.#closeCode }));
    this.#takeFrames();
    socket.resume();
  }

  /** One text message in one frame; an object as its JSON. */
  send(message: object | string): void {
    this.sendFrame(TEXT, typeof message === "string" ? message : JSON.stringify(message));
  }

  sendFrame(opcode: number, content: string | Buffer = "", fin = true): void {
    this.socket.write(frameOf(opcode, Buffer.from(content), fin));
  }

  /** The next message's JSON, or `{closed}` with the close code once all messages are read. */
  async next(): Promise<Message> {
    while (this.#queue.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#queue.shift();
  }

  /**
   * The next message of a type, null for bare packets; others before it are skipped. A close ends
   * the search.
   */
  async nextOf(type: string | null): Promise<Message> {
    for (;;) {
      const message = await this.next();
      if ("closed" in message || (message.type ?? null) === type) return message;
    }
  }

  /** Everything that was sent before this connection's own request was answered. */
  async soFar(): Promise<Message[]> {
    const mark = `mark-${randomBytes(6).toString("hex")}`;
    this.send({ type: mark });
    const messages: Message[] = [];
    for (;;) {
      const message = await this.next();
      messages.push(message);
      if (["UNKNOWN_TYPE", "AUTH_REQUIRED"].includes(message.code) || "closed" in message) break;
    }
    return "closed" in messages.at(-1) ? messages : messages.slice(0, -1);
  }

  /** Disconnects with a close frame, and waits for the server's. */
  async close(): Promise<void> {
    this.sendFrame(CLOSE, Buffer.from([0x03, 0xe8])); // 1000
    while (!("closed" in (await this.next())));
  }

  /** Disconnects without a close frame. */
  destroy(): void {
    this.socket.destroy();
  }

  #put(item: Message | Closed): void {
    this.#queue.push(item);
    this.#wake();
  }

  /** Section 5.2, for a server's frames: whole messages, and no mask. */
  #takeFrames(): void {
    for (;;) {
      if (this.#read.length < 2) return;
      const [first, second] = this.#read as unknown as [number, number];
      let length = second & 0x7f;
      let start = 2;
      if (length === 126) {
        if (this.#read.length < 4) return;
        length = this.#read.readUInt16BE(2);
        start = 4;
      } else if (length === 127) {
        if (this.#read.length < 10) return;
        length = Number(this.#read.readBigUInt64BE(2));
        start = 10;
      }
      if (this.#read.length < start + length) return;
      const content = this.#read.subarray(start, start + length);
      this.#read = this.#read.subarray(start + length);
      if ((first & 0x80) === 0) throw new Error("the relay sent a fragment");
      if ((second & 0x80) !== 0) throw new Error("the relay sent a masked frame");
      this.#take(first & 0x0f, content);
    }
  }

  #take(opcode: number, content: Buffer): void {
    if (opcode === TEXT) {
      const message = content.toString("utf8");
      this.texts.push(message);
      this.#put(JSON.parse(message));
      return;
    }
    this.controls.push(opcode);
    if (opcode === CLOSE) {
      this.#closeCode = content.length >= 2 ? content.readUInt16BE(0) : 1005;
      this.sendFrame(CLOSE, Buffer.from(content.subarray(0, 2)));
      this.socket.end();
    } else if (opcode === PING && this.#answersControlPings) {
      this.sendFrame(PONG, Buffer.from(content));
    }
  }
}

/** Section 5.3: what a client sends is masked. */
const frameOf = (opcode: number, content: Buffer, fin: boolean): Buffer => {
  const head = Buffer.alloc(content.length < 126 ? 2 : content.length < 65_536 ? 4 : 10);
  head[0] = (fin ? 0x80 : 0) | opcode;
  if (head.length === 2) {
    head[1] = 0x80 | content.length;
  } else if (head.length === 4) {
    head[1] = 0x80 | 126;
    head.writeUInt16BE(content.length, 2);
  } else {
    head[1] = 0x80 | 127;
    head.writeBigUInt64BE(BigInt(content.length), 2);
  }
  const mask = randomBytes(4);
  const masked = Buffer.alloc(content.length);
  for (let i = 0; i < content.length; i++) {
    masked[i] = (content[i] as number) ^ (mask[i % 4] as number);
  }
  return Buffer.concat([head, mask, masked]);
};
