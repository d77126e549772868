/** One connection of the generator: says hello as its plan wants, then counts and repeats. */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { PING_TEXT, PONG_TEXT } from "@blindrelay/protocol/wire";
import { FrameSplitter, maskedFrame } from "./frames.ts";
import type { Message, PeerPlan, Step } from "./messages.ts";

const HELLO_MS = 30_000;
const PONG = maskedFrame(Buffer.from(PONG_TEXT), 1);
/** Of what arrives during a hello, enough for every `until`. */
const KEPT = 70_000;

export class Peer {
  /** So many messages have arrived. */
  arrived: (count: number) => void = () => {};
  failed: (error: Error) => void = () => {};
  private readonly socket: Socket;
  private readonly plan: PeerPlan;
  private readonly splitter: FrameSplitter | null;
  /** While a hello waits: what has arrived, and who wants to look at it. */
  private text = "";
  private look: (() => void) | null = null;
  /** Bytes of one message, and how many of the next one have arrived. */
  private arrives = 0;
  private carried = 0;
  /** At index k: the message k times over. */
  private copies: Buffer[] = [];

  private constructor(plan: PeerPlan) {
    this.plan = plan;
    this.splitter = plan.ws === null ? null : new FrameSplitter();
    this.socket = connect({ port: plan.port, host: "127.0.0.1", noDelay: true });
    this.socket.on("error", (error) => this.failed(error));
    this.socket.on("close", () => this.failed(new Error("a connection of the benchmark closed")));
  }

  /** Rejects where the server does not answer the hello as the plan says. */
  static async connect(plan: PeerPlan): Promise<Peer> {
    const peer = new Peer(plan);
    if (plan.ws !== null) await peer.upgrade();
    peer.socket.on("data", (chunk: Buffer) => peer.receive(chunk));
    for (const step of plan.hello) {
      peer.write(step.send);
      await peer.until(step.until);
    }
    return peer;
  }

  /** Sends what binds a pair; resolves once the agent has seen it. */
  static async bind(client: Peer, agent: Peer, { send, until }: Step): Promise<void> {
    const seen = agent.until(until);
    client.write(send);
    await seen;
  }

  /** From now on `sends` goes out, up to `window` at a time, and messages like `hears` come in. */
  ready(sends: Message, hears: Message, window: number): void {
    this.arrives = hears.arrives;
    const one = this.encode(sends.send);
    this.copies = Array.from({ length: window + 1 }, (_, count) =>
      Buffer.concat(Array<Buffer>(count).fill(one)),
    );
  }

  send(count: number): void {
    for (let left = count; left > 0; ) {
      const now = Math.min(left, this.copies.length - 1);
      this.socket.write(this.copies[now] as Buffer);
      left -= now;
    }
  }

  /** Without a farewell, so that no port lingers in TIME_WAIT. */
  close(): void {
    this.failed = () => {};
    this.socket.resetAndDestroy();
  }

  private encode(text: string): Buffer {
    const bytes = Buffer.from(text, "latin1");
    return this.plan.ws === null ? bytes : maskedFrame(bytes, this.plan.ws.binary ? 2 : 1);
  }

  private write(text: string): void {
    if (text !== "") this.socket.write(this.encode(text));
  }

  /** Resolves once `text` has arrived, and forgets what had. */
  private until(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => {
        clearTimeout(timer);
        reject(error);
      };
      const timer = setTimeout(
        () => fail(new Error(`no ${JSON.stringify(text)} but ${JSON.stringify(this.text)}`)),
        HELLO_MS,
      );
      this.failed = fail;
      this.look = () => {
        if (!this.text.includes(text)) return;
        clearTimeout(timer);
        this.look = null;
        this.text = "";
        resolve();
      };
      this.look();
    });
  }

  private async upgrade(): Promise<void> {
    const { path, protocol } = this.plan.ws as NonNullable<PeerPlan["ws"]>;
    const key = randomBytes(16).toString("base64");
    this.socket.write(
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${this.plan.port}\r\nUpgrade: websocket\r\n` +
        `Connection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n` +
        `${protocol === null ? "" : `Sec-WebSocket-Protocol: ${protocol}\r\n`}\r\n`,
    );
    const first = await new Promise<Buffer>((resolve, reject) => {
      this.failed = reject;
      let read = Buffer.alloc(0);
      const take = (chunk: Buffer): void => {
        read = Buffer.concat([read, chunk]);
        const end = read.indexOf("\r\n\r\n");
        if (end < 0) return;
        this.socket.off("data", take);
        const status = read.toString("latin1", 0, 12);
        if (status !== "HTTP/1.1 101") reject(new Error(`the upgrade was answered ${status}`));
        else resolve(read.subarray(end + 4));
      };
      this.socket.on("data", take);
    });
    if (first.length > 0) this.receive(first);
  }

  private receive(chunk: Buffer): void {
    if (this.splitter === null) {
      this.take(chunk);
      return;
    }
    try {
      this.splitter.split(chunk, (piece, length, ends) => {
        if (this.plan.ws?.pings === true && length === PING_TEXT.length) {
          if (ends) this.socket.write(PONG);
        } else {
          this.take(piece);
        }
      });
    } catch (error) {
      this.failed(error as Error);
    }
  }

  private take(piece: Buffer): void {
    if (this.look !== null || this.arrives === 0) {
      this.text = (this.text + piece.toString("latin1")).slice(-KEPT);
      this.look?.();
      return;
    }
    this.carried += piece.length;
    if (this.carried < this.arrives) return;
    const count = Math.floor(this.carried / this.arrives);
    this.carried -= count * this.arrives;
    this.arrived(count);
  }
}
