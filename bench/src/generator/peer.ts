/** One connection of the generator: sends its plan's hello, then counts and repeats messages. */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { encodeFrame, OPCODE } from "@blindrelay/simulator/testing";
import { Arrivals } from "./arrivals.ts";
import { FrameSplitter, type Taker } from "./frames.ts";
import type { Message, PeerPlan, Step, WebSocketPlan } from "./messages.ts";

const HELLO_MS = 30_000;
/** The read buffer of all peers, which costs half as much as streams of chunks. */
const READ = Buffer.allocUnsafeSlow(262_144);
/** The kept part of what arrives during a hello, enough for every `until`. */
const KEPT = 70_000;

export class Peer implements Taker {
  /** Called when so many messages have arrived. */
  arrived: (count: number) => void = () => {};
  failed: (error: Error) => void = () => {};
  /** Messages so far. */
  sent = 0;
  private readonly socket: Socket;
  private readonly plan: PeerPlan;
  /** Null: the bytes are not framed. */
  private splitter: FrameSplitter | null = null;
  /** During a hello: what has arrived, and a function to call when more does. */
  private text = "";
  private look: (() => void) | null = null;
  /** Null during the hello. */
  private arrivals: Arrivals | null = null;
  /** The message to send. */
  private one: Buffer = Buffer.alloc(0);
  /** At index k: the message k times over, made on first use; at most `window` times. */
  private copies: Buffer[] = [];
  private window = 1;

  private constructor(plan: PeerPlan) {
    this.plan = plan;
    const callback = (length: number): boolean => this.receive(length);
    this.socket = connect({
      port: plan.port,
      host: "127.0.0.1",
      noDelay: true,
      onread: { buffer: READ, callback },
    });
    this.socket.on("error", (error) => this.failed(error));
    this.socket.on("close", () => this.failed(new Error("a connection of the benchmark closed")));
  }

  /** Rejects if the server does not answer the hello as planned. */
  static async connect(plan: PeerPlan): Promise<Peer> {
    const peer = new Peer(plan);
    if (plan.ws !== null) await peer.upgrade(plan.ws);
    for (const step of plan.hello) {
      peer.write(step.send);
      await peer.until(step.until);
    }
    return peer;
  }

  /** Sends the message that binds a pair; resolves once the agent has received it. */
  static async bind(client: Peer, agent: Peer, { send, until }: Step): Promise<void> {
    const seen = agent.until(until);
    client.write(send);
    await seen;
  }

  /** From now on `sends` is sent, up to `window` at a time, and `hears` is expected. */
  ready(sends: Message, hears: Message, window: number): void {
    const { aside: given } = this.plan;
    const aside = given === undefined ? null : Buffer.from(given.hear, "latin1");
    this.arrivals = new Arrivals(Buffer.from(hears.arrives, "latin1"), aside);
    this.one = this.encode(sends.send);
    this.copies = [];
    this.window = window;
  }

  /** Arriving messages are not counted until `ready`. */
  rest(): void {
    this.arrivals = null;
  }

  send(count: number): void {
    this.sent += count;
    for (let left = count; left > 0; ) {
      const now = Math.min(left, this.window);
      this.copies[now] ??= Buffer.concat(Array<Buffer>(now).fill(this.one));
      this.socket.write(this.copies[now]);
      left -= now;
    }
  }

  /** Without a closing handshake, so that no port stays in TIME_WAIT. */
  close(): void {
    this.failed = () => {};
    this.socket.resetAndDestroy();
  }

  private encode(text: string): Buffer {
    const bytes = Buffer.from(text, "latin1");
    return this.plan.ws === null
      ? bytes
      : encodeFrame(this.plan.ws.binary ? OPCODE.binary : OPCODE.text, bytes);
  }

  private write(text: string): void {
    if (text !== "") this.socket.write(this.encode(text));
  }

  /** Resolves once `text` has arrived, and discards what came before. */
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

  private async upgrade({ path, protocol }: WebSocketPlan): Promise<void> {
    const key = randomBytes(16).toString("base64");
    this.socket.write(
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${this.plan.port}\r\nUpgrade: websocket\r\n` +
        `Connection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n` +
        `${protocol === undefined ? "" : `Sec-WebSocket-Protocol: ${protocol}\r\n`}\r\n`,
    );
    await new Promise<void>((resolve, reject) => {
      this.failed = reject;
      this.look = () => {
        const end = this.text.indexOf("\r\n\r\n");
        if (end < 0) return;
        const status = this.text.slice(0, 12);
        const rest = Buffer.from(this.text.slice(end + 4), "latin1");
        this.look = null;
        this.text = "";
        this.splitter = new FrameSplitter();
        this.splitter.split(rest, rest.length, this);
        if (status === "HTTP/1.1 101") resolve();
        else reject(new Error(`the upgrade was answered ${status}`));
      };
    });
  }

  /** Handles the first bytes of READ; always true, so that the socket reads on. */
  private receive(length: number): boolean {
    this.arrivals?.begin();
    try {
      const taker = this.arrivals ?? this;
      if (this.splitter === null) taker.take(READ, 0, length);
      else this.splitter.split(READ, length, taker);
    } catch (error) {
      this.failed(error as Error);
      return true;
    }
    if (this.arrivals !== null) this.count(this.arrivals);
    return true;
  }

  private count({ counted, asked }: Arrivals): void {
    if (asked) this.write(this.plan.aside?.answer ?? "");
    if (counted > 0) this.arrived(counted);
  }
  /** What arrives while nothing is counted. */
  take(bytes: Buffer, from: number, to: number): void {
    this.text = (this.text + bytes.toString("latin1", from, to)).slice(-KEPT);
    const { aside } = this.plan;
    if (this.look !== null) {
      this.look();
    } else if (aside !== undefined && this.text.endsWith(aside.hear)) {
      this.text = "";
      this.write(aside.answer);
    }
  }
}
