/**
 * A minimal peer on a bare socket, light enough for ten thousand in a process: sends and receives
 * JSON, answers pings, seals nothing (the relay could not tell).
 */
import type { Socket } from "node:net";
import { frame, type RawPeer, upgraded } from "./raw-socket.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages of any shape are compared by tests
export type Message = any;

export interface RawLinkOptions extends RawPeer {
  readonly auth: object;
  onMessage?(message: Message, link: RawLink): void;
  onClose?(link: RawLink): void;
}

const OP_TEXT = 1;
const OP_PING = 9;
const OP_PONG = 10;

export class RawLink {
  readonly socket: Socket;
  readonly #options: RawLinkOptions;
  #rest: Buffer = Buffer.alloc(0);
  #accepted: ((message: Message) => void) | null = null;

  private constructor(socket: Socket, options: RawLinkOptions) {
    this.socket = socket;
    this.#options = options;
  }

  /** Resolves once the relay has answered `auth` with a session token; rejects otherwise. */
  static async open(options: RawLinkOptions): Promise<RawLink> {
    const socket = await upgraded(options);
    const link = new RawLink(socket, options);
    const answer = await new Promise<Message>((resolve, reject) => {
      link.#accepted = resolve;
      socket.on("data", (chunk: Buffer) => link.#read(chunk));
      socket.once("close", () => {
        reject(new Error("the link was closed before auth was answered"));
        options.onClose?.(link);
      });
      link.send({ type: "auth", ...options.auth });
    });
    if (answer.session_token === undefined) {
      socket.destroy();
      throw new Error(`auth refused: ${JSON.stringify(answer)}`);
    }
    return link;
  }

  send(message: object): void {
    this.socket.write(frame(OP_TEXT, JSON.stringify(message)));
  }

  close(): void {
    this.socket.destroy();
  }

  #read(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const short = (bytes[1] ?? 0) & 0x7f;
      const at = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (bytes.length < at) break;
      const length =
        short === 126
          ? bytes.readUInt16BE(2)
          : short === 127
            ? Number(bytes.readBigUInt64BE(2))
            : short;
      if (bytes.length < at + length) break;
      this.#handle((bytes[0] as number) & 0x0f, bytes.subarray(at, at + length));
      bytes = bytes.subarray(at + length);
    }
    this.#rest = Buffer.from(bytes);
  }

  #handle(opcode: number, payload: Buffer): void {
    if (opcode === OP_PING) this.socket.write(frame(OP_PONG, payload));
    if (opcode !== OP_TEXT) return;
    const message: Message = JSON.parse(payload.toString());
    if (message.type === "ping") {
      this.send({ type: "pong" });
    } else if (this.#accepted !== null) {
      this.#accepted(message);
      this.#accepted = null;
    } else {
      this.#options.onMessage?.(message, this);
    }
  }
}
