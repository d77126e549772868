/**
 * An ECMA-419 WebSocket client as a Link port. That client delivers messages in parts as they
 * arrive, writes no more than the socket accepts at once, answers pings and closes by itself, and
 * gives no reason for a failed connection.
 */
import type { Link, LinkEvents, LinkPort, TimerPort } from "../ports.ts";
import { asciiBytes, asciiText, PONG_TEXT } from "./core.ts";
import type { EcmaNetwork, EcmaWebSocket } from "./sdk.ts";
import { parseAddress, type RelayAddress } from "./url.ts";

const OP_CLOSE = 8;
/** RFC 6455 section 7.4.1: no code in the close frame; no close frame at all; message too big. */
const NO_STATUS = 1005;
const ABNORMAL = 1006;
const TOO_BIG = 1009;
/** How long the relay may take for the closing handshake before the socket is terminated. */
const CLOSE_GRACE_MS = 2000;

interface EcmaLinkOptions {
  /** For ws://; null if the project has none. */
  readonly ws: EcmaNetwork | null;
  /** For wss://. Its own configuration determines which certificates it accepts. */
  readonly wss: EcmaNetwork | null;
  readonly timer: TimerPort;
  /** Bytes of one message. */
  readonly maxMessage: number;
}

interface Outgoing {
  readonly bytes: Uint8Array;
  sent: number;
}

class EcmaLink implements Link {
  private readonly events: LinkEvents;
  private readonly options: EcmaLinkOptions;
  private client: EcmaWebSocket | null = null;
  /** `closing`: our close frame is waiting or was sent; `over`: `closed` was reported. */
  private state: "connecting" | "open" | "closing" | "over" = "connecting";
  private writable = 0;
  private queue: Outgoing[] = [];
  private queued = 0;
  /** Text of the message so far. */
  private message = "";
  private closeFrame: Uint8Array | null = null;
  private closeCode = ABNORMAL;
  private closeReason = "";

  constructor(events: LinkEvents, options: EcmaLinkOptions) {
    this.events = events;
    this.options = options;
  }

  /** Called soon after `connect`, which must not report anything itself. */
  begin(address: RelayAddress): void {
    if (this.state !== "connecting") return;
    const network = address.secure ? this.options.wss : this.options.ws;
    if (network === null) {
      this.finish(ABNORMAL, `this project has no ${address.secure ? "wss" : "ws"} network`);
      return;
    }
    try {
      this.client = new network.io({
        ...network,
        host: address.host,
        port: address.port,
        path: address.path,
        onReadable: (count, { more, binary }) => this.readable(count, more, binary === true),
        onWritable: (count) => this.canWrite(count),
        onControl: (opcode, data) => {
          if (opcode === OP_CLOSE) this.peerCloses(new Uint8Array(data));
        },
        onClose: () => this.finish(this.closeCode, this.closeReason),
        onError: () => this.finish(this.closeCode, this.closeReason || "the connection failed"),
      });
    } catch (error) {
      this.finish(ABNORMAL, `cannot connect: ${String(error)}`);
      return;
    }
    // It may have failed, or been given up, before the constructor returned.
    if ((this.state as string) === "over") this.drop();
  }

  send(text: string): void {
    if (this.state !== "open") return;
    // One pong answers every ping before it; a relay may send any number and read nothing.
    if (text === PONG_TEXT && this.queue.some(({ bytes }) => bytes.length === text.length)) return;
    const bytes = asciiBytes(text);
    this.queue.push({ bytes, sent: 0 });
    this.queued += bytes.length;
    this.flush();
  }

  queuedBytes(): number {
    return this.queued;
  }

  close(code: number, reason: string): void {
    if (this.state === "connecting") {
      this.state = "closing";
      this.drop();
      this.options.timer.set(0, () => this.finish(ABNORMAL, reason));
    }
    if (this.state === "open") this.beginClose(code, reason);
  }

  private beginClose(code: number, reason: string): void {
    this.state = "closing";
    this.closeCode = code;
    this.closeReason = reason;
    // Control frames may come between the fragments of a message (RFC 6455 section 5.4).
    this.queue = [];
    this.queued = 0;
    const text = asciiBytes(reason.substring(0, 100));
    const frame = new Uint8Array(2 + text.length);
    frame[0] = code >> 8;
    frame[1] = code & 255;
    frame.set(text, 2);
    this.closeFrame = frame;
    this.flush();
    this.options.timer.set(CLOSE_GRACE_MS, () => {
      this.drop();
      this.finish(code, reason);
    });
  }

  private canWrite(count: number): void {
    this.writable = count;
    if (this.state === "connecting") {
      this.state = "open";
      this.events.opened();
    }
    this.flush();
  }

  private flush(): void {
    const client = this.client;
    if (client === null) return;
    try {
      for (let first = this.queue[0]; first !== undefined; first = this.queue[0]) {
        const left = first.bytes.length - first.sent;
        const size = Math.min(left, this.writable);
        if (size === 0 && left > 0) return;
        const part = first.bytes.subarray(first.sent, first.sent + size);
        this.writable = client.write(part, { binary: false, more: size < left });
        first.sent += size;
        this.queued -= size;
        if (size === left) this.queue.shift();
      }
      const frame = this.closeFrame;
      if (frame !== null && frame.length <= this.writable) {
        this.closeFrame = null;
        this.writable = client.write(frame, { opcode: OP_CLOSE });
      }
    } catch (error) {
      // It throws if the socket is gone and that was not reported yet.
      this.drop();
      this.options.timer.set(0, () => this.finish(ABNORMAL, String(error)));
    }
  }

  private readable(count: number, more: boolean, binary: boolean): void {
    const part = this.client?.read(count);
    if (this.state !== "open") return;
    const bytes = part === undefined ? 0 : part.byteLength;
    if (this.message.length + bytes > this.options.maxMessage) {
      this.message = "";
      this.beginClose(TOO_BIG, "message too large");
      return;
    }
    if (part !== undefined && !binary) this.message += asciiText(new Uint8Array(part));
    if (more) return;
    const text = this.message;
    this.message = "";
    if (!binary) this.events.received(text);
  }

  /** The client answers by itself, and ends a second later, which this does not wait for. */
  private peerCloses(payload: Uint8Array): void {
    if (this.state === "closing") return;
    const code =
      payload.length < 2 ? NO_STATUS : (payload[0] as number) * 256 + (payload[1] as number);
    this.finish(code, asciiText(payload.subarray(2)));
  }

  private drop(): void {
    const client = this.client;
    this.client = null;
    if (client === null) return;
    try {
      client.close();
    } catch {
      // It was already closed, which is the desired result.
    }
  }

  private finish(code: number, reason: string): void {
    if (this.state === "over") return;
    this.state = "over";
    this.message = "";
    this.queue = [];
    this.queued = 0;
    this.closeFrame = null;
    this.events.closed(code, reason);
  }
}

/** Links of which the newest tells how much it holds. */
interface EcmaLinks extends LinkPort {
  /** Whether less waits for the network than the longest message has. */
  hasRoom(): boolean;
}

/** Links over the project's networks. Accepts the same addresses as parseAddress. */
export const ecmaLinks = (options: EcmaLinkOptions): EcmaLinks => {
  let link: EcmaLink;
  return {
    connect: (url, events) => {
      const address = parseAddress(url);
      if (address === null) throw new Error("a relay's address begins with ws, wss, http or https");
      const made = new EcmaLink(events, options);
      link = made;
      options.timer.set(0, () => made.begin(address));
      return made;
    },
    hasRoom: () => link.queuedBytes() < options.maxMessage,
  };
};
