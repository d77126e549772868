/**
 * A WebSocket client (RFC 6455) for Espruino, as a Link port. The module that Espruino ships loses
 * a message in the same segment as the 101, delivers fragments as messages, has no close codes, and
 * throws out of a failed connect; this one does none of that, and limits what it buffers.
 *
 * Strings here are byte strings, one character per byte, as in Espruino's sockets.
 *
 * [portable]
 */
import { MAX_FRAGMENTS } from "@blindrelay/protocol";
import { asciiBytes, asciiText } from "@blindrelay/protocol/crypto";
import { PING_TEXT } from "@blindrelay/protocol/wire";
import type { Link, LinkEvents, LinkPort, Random, TimerPort } from "../ports.ts";
import type { EspruinoCrypto, EspruinoSocket, EspruinoSockets } from "./board.ts";
import { base64, handshakeProblem, handshakeRequest, parseUrl, type Target } from "./handshake.ts";

export interface WebSocketOptions {
  readonly net: EspruinoSockets;
  /** Only for wss://; Espruino's TLS checks no certificate (docs/espruino.md). */
  readonly tls: EspruinoSockets | null;
  readonly random: Random;
  readonly crypto: EspruinoCrypto;
  readonly timer: TimerPort;
  /** Maximum size of a received message; a longer one closes the link with 1009. */
  readonly maxMessage: number;
}

const MAX_HEAD = 2048;
/** Of the room for the longest message, what handling a usual one takes while others wait. */
const HANDLING_BYTES = 1024;
/** A turn that Espruino ends for lack of memory never reports its end. */
const HANDLING_MS = 3000;
/** Payload of a control frame, section 5.5. */
const MAX_CONTROL = 125;
const OP_CONTINUATION = 0;
const OP_TEXT = 1;
const OP_CLOSE = 8;
const OP_PING = 9;
const OP_PONG = 10;

const char2 = (value: number): string => String.fromCharCode((value >> 8) & 255, value & 255);

/**
 * A byte string XOR a repeated mask of 4 bytes (section 5.3). In 32-bit words, because an
 * interpreter's cost is the number of loop turns.
 */
const maskPayload = (payload: string, mask: Uint8Array): string => {
  const words = new Int32Array((payload.length + 3) >> 2);
  const bytes = new Uint8Array(words.buffer);
  bytes.set(asciiBytes(payload), 0);
  const key = new Int32Array(1);
  new Uint8Array(key.buffer).set(mask, 0);
  const word = key[0] as number;
  for (let i = 0; i < words.length; i++) words[i] = (words[i] as number) ^ word;
  return asciiText(bytes.subarray(0, payload.length));
};

/** Whether it holds an opening or a session's first packet (seq 0 or 1), in either form. */
const isRepeated = (message: string): boolean =>
  message.indexOf('":0,') >= 0 || message.indexOf('":1,') >= 0;

/** One final masked frame; its payload is a byte string. */
const encodeFrame = (opcode: number, payload: string, mask: Uint8Array): string => {
  const length = payload.length;
  const head =
    length < 126
      ? String.fromCharCode(0x80 | opcode, 0x80 | length)
      : length < 65536
        ? String.fromCharCode(0x80 | opcode, 0xfe) + char2(length)
        : `${String.fromCharCode(0x80 | opcode, 0xff)}\0\0\0\0${char2(length >> 16)}${char2(length)}`;
  return (
    head +
    String.fromCharCode(
      mask[0] as number,
      mask[1] as number,
      mask[2] as number,
      mask[3] as number,
    ) +
    maskPayload(payload, mask)
  );
};

class WebSocketLink implements Link {
  declare options: WebSocketOptions;
  declare events: LinkEvents;
  declare url: string;
  declare socket: EspruinoSocket | null;
  /** Sec-WebSocket-Key; "" once it was answered. */
  key = "";
  declare state: "handshake" | "open" | "closing" | "closed";
  buffer = "";
  /** The fragments of a message so far; null between messages. */
  declare message: string | null;
  /** Their number. Each costs the board a copy of all previous ones. */
  fragments = 0;
  /** The message that is handled; "" if none is. */
  handling = "";
  /** Complete messages that wait until the one before them was handled, and their length. */
  declare unhandled: string[];
  waits = 0;
  /** Until when the last message may be in progress, in milliseconds; 0: it is done. */
  handlingUntil = 0;
  /** Texts to send. */
  declare queue: string[];
  /** The queue waits for `drain`, or for the timer that empties it. */
  blocked = false;

  constructor(options: WebSocketOptions, url: string, events: LinkEvents) {
    this.options = options;
    this.events = events;
    this.url = url;
    this.socket = null;
    this.state = "handshake";
    this.message = null;
    this.unhandled = [];
    this.queue = [];
  }

  /**
   * Called soon after construction: a refused connection throws here, not in the caller's
   * `connect`.
   */
  begin(): void {
    const target = parseUrl(this.url) as Target;
    if (this.state !== "handshake") return;
    const sockets = target.secure ? this.options.tls : this.options.net;
    if (sockets === null) {
      this.finish(1006, "this board has no TLS");
      return;
    }
    try {
      this.listen(sockets, target.host, target.port);
    } catch (error) {
      this.finish(1006, `cannot connect: ${String(error)}`);
    }
  }

  /** A separate method, because its closures keep everything in their scope. */
  private listen(sockets: EspruinoSockets, host: string, port: number): void {
    const socket = sockets.connect({ host: host, port: port }, () => this.connected());
    this.socket = socket;
    socket.on("data", (data) => this.receive(data));
    socket.on("drain", () => this.drained());
    socket.on("error", (error) => this.finish(1006, `socket error ${String(error)}`));
    socket.on("close", () => this.finish(1006, "connection broke"));
  }

  /**
   * Only queues the text. A send often answers a received message, so the caller is some twenty
   * calls deep; a board has memory for these or for making a frame, but not for both.
   */
  send(text: string): void {
    // One pong answers every ping before it; a relay may send any number and read nothing.
    if (this.state !== "open" || this.queue.indexOf(text) >= 0) return;
    this.queue.push(text);
    if (this.blocked) return;
    this.blocked = true;
    this.options.timer.set(0, () => this.drained());
  }

  close(code: number, reason: string): void {
    if (this.state !== "open" && this.state !== "handshake") return;
    if (this.state === "open") this.sayClose(char2(code) + reason);
    this.state = "closing";
    this.options.timer.set(0, () => this.finish(code, reason));
  }

  private connected(): void {
    if (this.state !== "handshake") return;
    const target = parseUrl(this.url) as Target;
    this.key = base64(this.options.random(16));
    this.put(handshakeRequest(target, this.key));
  }

  private drained(): void {
    this.blocked = false;
    while (!this.blocked && this.queue.length > 0) {
      this.blocked = !this.write(OP_TEXT, this.queue.shift() as string);
    }
    if (this.queue.length === 0) this.readOn();
  }

  private receive(data: string): void {
    if (this.state === "closed") return;
    this.buffer += data;
    if (this.key !== "" && !this.readHead()) return;
    while (this.state === "open" && this.readFrame()) this.readOn();
  }

  /**
   * Frames are cut at once, because the text that they are cut from is copied for each. Clients
   * repeat what is not answered, and a board may be slower than they: it handles once what comes
   * several times meanwhile. What waits must leave memory for what is handled: one that its client
   * repeats is dropped unread, else the oldest. The relay's ping does not wait, because it ends the
   * link if it is not answered soon.
   */
  private wait(message: string): void {
    if (message === this.handling || this.unhandled.indexOf(message) >= 0) return;
    if (message === PING_TEXT) {
      this.events.received(message);
      return;
    }
    this.unhandled.push(message);
    this.waits += message.length;
    const most = this.options.maxMessage - HANDLING_BYTES;
    while (this.waits > most && this.unhandled.length > 1) {
      let at = this.unhandled.length - 1;
      while (at > 0 && !isRepeated(this.unhandled[at] as string)) at--;
      this.take(at);
    }
  }

  private take(at: number): string {
    const message = this.unhandled.splice(at, 1)[0] as string;
    this.waits -= message.length;
    return message;
  }

  /** One message at a time: a small board has memory for one, until it was answered. */
  private readOn(): void {
    const now = this.options.timer.now();
    if (now < this.handlingUntil || this.queue.length > 0 || this.unhandled.length === 0) return;
    this.handling = this.take(0);
    this.handlingUntil = now + HANDLING_MS;
    // On a separate stack: received data occupies memory until the socket's listener returns.
    const done = (): void => this.handled();
    Promise.resolve()
      .then(() => this.events.received(this.handling))
      // After the handler, which is scheduled in the same way (core/dispatch.ts).
      .then(done, done);
  }

  private handled(): void {
    this.handling = "";
    this.handlingUntil = 0;
    this.readOn();
  }

  /** Whether the 101 is complete. Later bytes in the same segment stay in the buffer. */
  private readHead(): boolean {
    const end = this.buffer.indexOf("\r\n\r\n");
    if (end < 0 || end > MAX_HEAD) {
      if (this.buffer.length > MAX_HEAD) this.fail(1006, "answer too long");
      return false;
    }
    const problem = handshakeProblem(this.buffer.substring(0, end), this.key, this.options.crypto);
    this.buffer = this.buffer.substring(end + 4);
    this.key = "";
    if (problem !== null) return this.fail(1006, problem);
    if (this.state !== "handshake") return false;
    this.state = "open";
    this.events.opened();
    return true;
  }

  /** Handles one frame if it is complete; false if no other can be read. */
  private readFrame(): boolean {
    const buffer = this.buffer;
    if (buffer.length < 2) return false;
    const first = buffer.charCodeAt(0);
    const second = buffer.charCodeAt(1);
    // Reserved bits without an extension, or a masked frame from a server: RFC 6455 sections 5.1,
    // 5.2.
    if ((first & 0x70) !== 0 || second > 127) return this.fail(1002, "bad frame");
    let length = second;
    let at = 2;
    if (second === 126) {
      if (buffer.length < 4) return false;
      length = buffer.charCodeAt(2) * 256 + buffer.charCodeAt(3);
      at = 4;
    } else if (second === 127) {
      if (buffer.length < 10) return false;
      length = 0;
      for (let i = 2; i < 10; i++) length = length * 256 + buffer.charCodeAt(i);
      at = 10;
    }
    if (length > this.options.maxMessage) return this.fail(1009, "too large");
    if (buffer.length < at + length) return false;
    const end = at + length;
    this.buffer = buffer.substring(end);
    return this.handleFrame(first & 15, (first & 0x80) !== 0, buffer.substring(at, end));
  }

  private handleFrame(opcode: number, final: boolean, payload: string): boolean {
    if (opcode >= OP_CLOSE && (!final || payload.length > MAX_CONTROL))
      return this.fail(1002, "bad frame");
    if (opcode === OP_CLOSE) {
      this.state = "closing";
      this.options.timer.set(0, () => this.answerClose(payload));
    } else if (opcode === OP_PING) this.blocked = this.blocked || !this.write(OP_PONG, payload);
    else if (opcode === OP_TEXT || opcode === OP_CONTINUATION)
      return this.addFragment(opcode, final, payload);
    else if (opcode !== OP_PONG) return this.fail(1003, "text only");
    return true;
  }

  private addFragment(opcode: number, final: boolean, payload: string): boolean {
    const begun = this.message;
    if ((opcode === OP_TEXT) !== (begun === null)) return this.fail(1002, "bad frame");
    const message = begun === null ? payload : begun + payload;
    if (message.length > this.options.maxMessage) return this.fail(1009, "too large");
    this.fragments = final ? 0 : this.fragments + 1;
    if (this.fragments >= MAX_FRAGMENTS) return this.fail(1008, "too large");
    this.message = final ? null : message;
    if (final) this.wait(message);
    return true;
  }

  private answerClose(payload: string): void {
    const code = payload.length < 2 ? 1005 : payload.charCodeAt(0) * 256 + payload.charCodeAt(1);
    this.sayClose(payload.substring(0, 2));
    this.finish(code, payload.substring(2));
  }

  /** Everything queued, then the close frame: nothing may follow it (section 5.5.1). */
  private sayClose(payload: string): void {
    while (this.queue.length > 0) this.write(OP_TEXT, this.queue.shift() as string);
    this.write(OP_CLOSE, payload.substring(0, MAX_CONTROL));
  }

  private write(opcode: number, payload: string): boolean {
    return this.put(encodeFrame(opcode, payload, this.options.random(4)));
  }

  /** False: the socket queued it and emits `drain` when it accepts more, or it is gone. */
  private put(bytes: string): boolean {
    const socket = this.socket;
    if (socket === null) return false;
    try {
      return socket.write(bytes);
    } catch (error) {
      this.finish(1006, `cannot write: ${String(error)}`);
      return false;
    }
  }

  /**
   * Ends the link for a fault of the other side. Returns false, so that reading stops. In a
   * separate turn, like the answer to a close: Espruino never frees an object with eight active
   * method calls.
   */
  private fail(code: number, reason: string): boolean {
    const wasOpen = this.state === "open";
    this.state = "closing";
    this.options.timer.set(0, () => {
      if (wasOpen) this.sayClose(char2(code) + reason);
      this.finish(code, reason);
    });
    return false;
  }

  private finish(code: number, reason: string): void {
    if (this.state === "closed") return;
    this.state = "closed";
    // What came before is still delivered.
    for (const message of this.unhandled) this.events.received(message);
    this.unhandled = [];
    this.buffer = "";
    this.queue = [];
    const socket = this.socket;
    this.socket = null;
    try {
      (socket as EspruinoSocket).end();
    } catch {
      // Espruino throws if the socket is already gone, or was never made.
    }
    this.events.closed(code, reason);
  }
}

/** The Link port of a board. Addresses: `ws://host[:port]/path`, or `wss://` if there is TLS. */
export class WebSocketLinks implements LinkPort {
  declare options: WebSocketOptions;

  constructor(options: WebSocketOptions) {
    this.options = options;
  }

  connect(url: string, events: LinkEvents): Link {
    if (parseUrl(url) === null) throw new Error("not a ws:// or wss:// address");
    const link = new WebSocketLink(this.options, url, events);
    this.options.timer.set(0, () => link.begin());
    return link;
  }
}
