/**
 * Espruino's `require("net")` without a network: the far end of each socket is a WebSocket server
 * that accepts every connection and passes its frames to a `Wire`.
 */
import { createHash } from "node:crypto";
import type { ConnectWire, Wire } from "../engines/wire.ts";
import type { EspruinoSocket, EspruinoSockets } from "../espruino/board.ts";
import type { TimerPort } from "../ports.ts";

const ACCEPT_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455 section 1.3
const END_OF_HEAD = "\r\n\r\n";
const MASK_BYTES = 4;

const upgraded = (key: string): string =>
  [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${createHash("sha1").update(`${key}${ACCEPT_GUID}`).digest("base64")}`,
    END_OF_HEAD.slice(2),
  ].join("\r\n");

/** An unmasked frame, as servers write them. */
const frameOf = (opcode: number, final: boolean, payload: Uint8Array): string => {
  const { length } = payload;
  const head =
    length < 126
      ? [length]
      : length < 65_536
        ? [126, length >> 8, length & 255]
        : [127, 0, 0, 0, 0, length >> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255];
  return Buffer.from([(final ? 0x80 : 0) | opcode, ...head, ...payload]).toString("latin1");
};

class FarEnd implements EspruinoSocket {
  private readonly listeners = new Map<string, (value?: never) => void>();
  private readonly connectWire: ConnectWire;
  private readonly host: string;
  private readonly port: number;
  private buffer: Buffer = Buffer.alloc(0);
  private wire: Wire | null = null;
  private gone = false;

  constructor(connectWire: ConnectWire, host: string, port: number) {
    this.connectWire = connectWire;
    this.host = host;
    this.port = port;
  }

  on(event: string, listener: (value: never) => void): void {
    this.listeners.set(event, listener as (value?: never) => void);
  }

  write(data: string): boolean {
    if (this.gone) throw new Error("Function not found");
    this.buffer = Buffer.concat([this.buffer, Buffer.from(data, "latin1")]);
    if (this.wire === null) this.readHead();
    else while (this.readFrame());
    return true;
  }

  end(): void {
    if (this.gone) throw new Error("Function not found");
    this.gone = true;
    this.wire?.end();
  }

  private say(event: "data" | "close", value?: string): void {
    if (!this.gone) this.listeners.get(event)?.(value as never);
  }

  private readHead(): void {
    const end = this.buffer.indexOf(END_OF_HEAD);
    if (end < 0) return;
    const head = this.buffer.toString("latin1", 0, end);
    this.buffer = this.buffer.subarray(end + END_OF_HEAD.length);
    const path = /^GET (\S+) HTTP\/1\.1\r\n/.exec(head)?.[1];
    const key = /\r\nSec-WebSocket-Key: (\S+)/i.exec(head)?.[1];
    if (path === undefined || key === undefined) throw new Error(`no upgrade: ${head}`);
    this.wire = this.connectWire(this.host, this.port, path, {
      opened: () => this.say("data", upgraded(key)),
      frame: (opcode, final, payload) => this.say("data", frameOf(opcode, final, payload)),
      ended: () => {
        this.say("close");
        this.gone = true;
      },
    });
  }

  /** Whether a frame was complete and went to the wire. */
  private readFrame(): boolean {
    const { buffer } = this;
    if (buffer.length < 2) return false;
    const [first, second] = buffer as unknown as [number, number];
    if ((second & 0x80) === 0) throw new Error("a client's frame without a mask");
    const short = second & 0x7f;
    const at = short < 126 ? 2 : 4;
    if (short === 127) throw new Error("a frame of more than 65,535 bytes");
    if (buffer.length < at) return false;
    const length = short < 126 ? short : buffer.readUInt16BE(2);
    const end = at + MASK_BYTES + length;
    if (buffer.length < end) return false;
    const payload = Uint8Array.from(
      buffer.subarray(at + MASK_BYTES, end),
      (byte, i) => byte ^ (buffer[at + (i & 3)] as number),
    );
    this.buffer = buffer.subarray(end);
    this.wire?.write(first & 15, (first & 0x80) !== 0, payload);
    return true;
  }
}

/** The stand-in for the module. `timer` delays what the real one never does inside `connect`. */
export const wireNet = (connectWire: ConnectWire, timer: TimerPort): EspruinoSockets => ({
  connect({ host, port }, connected) {
    timer.set(0, connected);
    return new FarEnd(connectWire, host, port);
  },
});
