/**
 * The link of a simulated agent: agent-sdk's LinkPort on a bare `net.Socket`, light enough for
 * 10,000 in one process.
 *
 * Three unusual techniques keep it light: all sockets read into one buffer (`onread`), so an idle
 * link owns no read buffer; listeners are functions of this file, shared by all links, and find
 * their link by a property of the socket; timers exist only while a link connects or closes.
 *
 * Back-pressure: while the kernel does not accept more of what we send, nothing is read either, so
 * a relay that does not read our answers cannot ask for more. A queue that still grows past
 * MAX_QUEUED_BYTES ends the link.
 */
import { connect as connectSocket, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Link, LinkEvents, LinkPort } from "@blindrelay/agent-sdk/ports";
import { MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
import { proxyFor } from "@blindrelay/protocol/net/node";
import { encodeClose, encodeFrame, FrameReader, type FrameSink, OPCODE } from "./frames.ts";
import { Tunnel } from "./tunnel.ts";
import { encodeUpgrade, makeKey, UpgradeReader } from "./upgrade.ts";

const READ_BUFFER_BYTES = 65_536;
const MAX_QUEUED_BYTES = 1_048_576;

export interface LiveLinkOptions {
  /** The longest wait for the upgrade, and for the peer's half of the closing handshake. */
  connectTimeoutMs?: number;
  closeTimeoutMs?: number;
  /** A longer message closes the link with 1009. */
  maxMessageBytes?: number;
  /** Writes everything sent in one turn together: for links that carry many messages at a time. */
  gathers?: boolean;
}

/** A link with a socket that can be treated as by a bad network or a slow peer. */
export interface RawLink extends Link {
  /** Ends the socket at once, without a close frame. */
  abort(code: number, reason: string): void;
  /** Stops or resumes reading. */
  stall(on: boolean): void;
}

export interface RawLinkPort extends LinkPort {
  connect(url: string, events: LinkEvents): RawLink;
}

/**
 * A LinkPort for `ws://` and `wss://` addresses, through the proxy of the environment if there is
 * one. All links of one port share one read buffer, except those over TLS or a proxy; TLS trusts
 * what Node trusts (NODE_EXTRA_CA_CERTS). `connect` throws a TypeError for other addresses.
 */
export function liveLinkPort(options: LiveLinkOptions = {}): RawLinkPort {
  const buffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
  const settings: Settings = {
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    closeTimeoutMs: options.closeTimeoutMs ?? 2_000,
    maxMessageBytes: options.maxMessageBytes ?? MAX_MESSAGE_BYTES,
    gathers: options.gathers ?? false,
  };
  return {
    connect(address: string, events: LinkEvents): RawLink {
      const url = new URL(address);
      const host = url.hostname.replace(/^\[|\]$/g, "");
      if (!/^wss?:$/.test(url.protocol))
        throw new TypeError(`the simulator supports ws:// and wss://, not ${url.protocol}//`);
      const isSecure = url.protocol === "wss:";
      const port = Number(url.port || (isSecure ? 443 : 80));
      const proxy = proxyFor(url, undefined);
      const tunnel = proxy === null ? null : new Tunnel(proxy, host, port);
      if (!isSecure && tunnel === null) {
        const onread = { buffer, callback: onRead };
        const socket = connectSocket({ host, port, noDelay: true, onread }) as LinkSocket;
        return new LiveLink(socket, url, events, settings);
      }
      const servername = isIP(host) === 0 ? host : "";
      const way = tunnel === null ? {} : { socket: tunnel };
      const stream = isSecure ? connectTls({ host, port, servername, ...way }) : tunnel;
      const socket = stream as unknown as LinkSocket;
      if (tunnel === null) socket.setNoDelay();
      socket.on("data", onData);
      return new LiveLink(socket, url, events, settings);
    },
  };
}

interface Settings {
  connectTimeoutMs: number;
  closeTimeoutMs: number;
  maxMessageBytes: number;
  gathers: boolean;
}

type LinkSocket = Socket & { link: LiveLink };

class LiveLink implements RawLink, FrameSink {
  private readonly socket: LinkSocket;
  private readonly events: LinkEvents;
  private readonly settings: Settings;
  private upgrade: UpgradeReader | null;
  private reader: FrameReader | null = null;
  private state: "connecting" | "open" | "closing" | "closed" = "connecting";
  private timer: NodeJS.Timeout | null;
  private isStalled = false;
  private code = 1006;
  private reason = "";

  constructor(socket: LinkSocket, url: URL, events: LinkEvents, settings: Settings) {
    this.socket = socket;
    this.events = events;
    this.settings = settings;
    const key = makeKey();
    this.upgrade = new UpgradeReader(key);
    this.timer = setTimeout(
      onTimeout,
      settings.connectTimeoutMs,
      this,
      "no answer to the upgrade in time",
    );
    socket.link = this;
    socket.on("error", onError);
    socket.on("close", onClose);
    socket.on("drain", onDrain);
    // Queued by the socket until it is connected.
    socket.write(encodeUpgrade(url, key), "latin1");
  }

  send(text: string): void {
    if (this.state !== "open") return;
    this.write(encodeFrame(OPCODE.text, text));
  }

  queuedBytes(): number {
    return this.socket.writableLength;
  }

  close(code: number, reason: string): void {
    if (this.state === "connecting") {
      this.abort(code, reason);
    } else if (this.state === "open") {
      this.startClosing(code, reason);
      this.write(encodeClose(code, reason));
    }
  }

  /**
   * Reads the first `length` bytes of the shared buffer; false asks the socket to stop reading
   * until it has drained.
   */
  receive(buffer: Buffer, length: number): boolean {
    if (this.state === "closed") return true;
    const chunk = buffer.subarray(0, length);
    if (this.upgrade !== null) {
      const result = this.upgrade.push(chunk);
      if (result.kind === "more") return true;
      this.upgrade = null;
      if (result.kind === "refused") {
        this.abort(1006, result.reason);
        return true;
      }
      this.reader = new FrameReader(this.settings.maxMessageBytes);
      this.clearTimer();
      this.state = "open";
      this.events.opened();
      if (result.rest.length > 0) this.reader.push(result.rest, this);
    } else {
      this.reader?.push(chunk, this);
    }
    return !this.isStalled && !this.socket.writableNeedDrain;
  }

  stall(on: boolean): void {
    this.isStalled = on;
    if (on) this.socket.pause();
    else this.drained();
  }

  drained(): void {
    if (!this.isStalled && !this.socket.writableNeedDrain) this.socket.resume();
  }

  text(text: string): void {
    if (this.state === "open") this.events.received(text);
  }

  ping(payload: Buffer): void {
    if (this.state === "open") this.write(encodeFrame(OPCODE.pong, payload));
  }

  pong(): void {}

  /**
   * The peer's close frame: the answer to ours, or one that we answer. The peer closes the socket
   * first (section 7.1.1).
   */
  peerClosed(code: number, reason: string): void {
    if (this.state === "open") {
      this.startClosing(code, reason);
      this.write(encodeClose(code, ""));
    }
    this.socket.end();
  }

  /** The peer violated RFC 6455: send the close code and end without waiting for its answer. */
  broken(code: number, reason: string): void {
    if (this.state === "open") {
      this.startClosing(code, reason);
      this.write(encodeClose(code, reason));
    }
    this.socket.end();
  }

  /**
   * Ends the socket at once; `closed` follows when it is gone, with the first given code and
   * reason.
   */
  abort(code: number, reason: string): void {
    if (this.state === "connecting" || this.state === "open") this.startClosing(code, reason);
    this.socket.destroy();
  }

  socketClosed(): void {
    this.state = "closed";
    this.clearTimer();
    this.reader?.end();
    this.events.closed(this.code, this.reason);
  }

  private startClosing(code: number, reason: string): void {
    this.state = "closing";
    this.code = code;
    this.reason = reason;
    this.clearTimer();
    this.timer = setTimeout(
      onTimeout,
      this.settings.closeTimeoutMs,
      this,
      "no answer to the close frame in time",
    );
  }

  private write(frame: Buffer): void {
    if (this.settings.gathers && this.socket.writableCorked === 0) {
      this.socket.cork();
      process.nextTick(uncork, this.socket);
    }
    if (this.socket.write(frame)) return;
    if (this.socket.writableLength > MAX_QUEUED_BYTES)
      this.abort(1008, "the relay takes nothing more");
    else this.socket.pause();
  }

  private clearTimer(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}

function onRead(this: LinkSocket, length: number, buffer: Uint8Array): boolean {
  return this.link.receive(buffer as Buffer, length);
}

function onError(this: LinkSocket, error: Error): void {
  this.link.abort(1006, error.message);
}

function onClose(this: LinkSocket): void {
  this.link.socketClosed();
}

/** For TLS and proxies. */
function onData(this: LinkSocket, chunk: Buffer): void {
  if (!this.link.receive(chunk, chunk.length)) this.pause();
}

function onDrain(this: LinkSocket): void {
  this.link.drained();
}

function uncork(socket: LinkSocket): void {
  socket.uncork();
}

function onTimeout(link: LiveLink, reason: string): void {
  link.abort(1006, reason);
}
