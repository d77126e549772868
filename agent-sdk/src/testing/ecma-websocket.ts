/**
 * A stand-in for Moddable's ECMA-419 WebSocket client (SDK 8.2), with what an edge must cope with:
 * messages in parts, unread data that stays unread, refused writes beyond what the socket accepts,
 * automatic pongs and close frames, a second between a peer's close and `onClose`. No DOM, no Node:
 * it also runs in XS, with frames carried by `Wire`.
 */
import type { ConnectWire, Wire } from "../engines/wire.ts";
import type { EcmaWebSocket, EcmaWebSocketOptions } from "../moddable/sdk.ts";
import type { TimerPort } from "../ports.ts";

/** As on Linux: what the socket accepts and delivers at once. */
const SOCKET_BYTES = 1536;
const CLOSE_LINGER_MS = 1000;
const OP_TEXT = 1;
const OP_BINARY = 2;
const OP_CLOSE = 8;
const OP_PING = 9;
const OP_PONG = 10;

const headBytes = (length: number): number => (length < 126 ? 6 : length < 65536 ? 8 : 14);

/** The class in a network's `io`. */
export const ecmaWebSocket = (
  connect: ConnectWire,
  timer: TimerPort,
): (new (
  options: EcmaWebSocketOptions,
) => EcmaWebSocket) =>
  class implements EcmaWebSocket {
    private readonly options: EcmaWebSocketOptions;
    private readonly wire: Wire;
    private open = false;
    private gone = false;
    private writable = 0;
    private fragmented = false;
    private closeSent = false;
    private closeReceived = false;
    private binary = false;
    private readonly incoming: { payload: Uint8Array; final: boolean; binary: boolean }[] = [];
    private unread = new Uint8Array(0);

    constructor(options: EcmaWebSocketOptions) {
      this.options = options;
      this.wire = connect(options.host, options.port, options.path, {
        opened: () => {
          this.open = true;
          this.drained();
        },
        frame: (opcode, final, payload) => this.frame(opcode, final, payload),
        ended: () => {
          if (this.gone) return;
          this.gone = true;
          if (this.closeSent || this.closeReceived) options.onClose();
          else options.onError();
        },
      });
    }

    read(count: number): ArrayBuffer | undefined {
      if (this.unread.length === 0) return undefined;
      const part = this.unread.slice(0, count);
      this.unread = this.unread.slice(count);
      if (this.unread.length === 0) timer.set(0, () => this.hand());
      return part.buffer;
    }

    write(
      data: Uint8Array,
      options: { readonly binary?: boolean; readonly more?: boolean; readonly opcode?: number },
    ): number {
      const total = data.length + headBytes(data.length);
      if (!this.open || this.gone || total > this.writable) throw new Error("cannot write");
      if (options.opcode === undefined) {
        const opcode = this.fragmented ? 0 : options.binary === false ? OP_TEXT : OP_BINARY;
        this.fragmented = options.more === true;
        this.wire.write(opcode, !this.fragmented, data.slice());
      } else {
        this.wire.write(options.opcode, true, data.slice());
        if (options.opcode === OP_CLOSE) this.closeSent = true;
      }
      if (this.writable === SOCKET_BYTES) timer.set(1, () => this.drained());
      this.writable -= total;
      return Math.max(0, this.writable - 14);
    }

    close(): void {
      this.gone = true;
      this.wire.end();
    }

    private drained(): void {
      if (this.gone) return;
      this.writable = SOCKET_BYTES;
      this.options.onWritable(SOCKET_BYTES - 8);
    }

    private frame(opcode: number, final: boolean, payload: Uint8Array): void {
      if (this.gone) return;
      if (opcode >= OP_CLOSE) {
        this.control(opcode, payload);
        return;
      }
      if (opcode !== 0) this.binary = opcode === OP_BINARY;
      this.incoming.push({ payload, final, binary: this.binary });
      this.hand();
    }

    private control(opcode: number, payload: Uint8Array): void {
      this.options.onControl(opcode, payload.slice().buffer);
      if (this.gone) return;
      if (opcode === OP_PING) this.wire.write(OP_PONG, true, payload);
      if (opcode !== OP_CLOSE) return;
      if (this.closeSent) {
        this.close();
        this.options.onClose();
        return;
      }
      this.closeReceived = true;
      this.wire.write(OP_CLOSE, true, payload);
      timer.set(CLOSE_LINGER_MS, () => {
        if (this.gone) return;
        this.close();
        this.options.onClose();
      });
    }

    /** Delivers the next part of the waiting messages, unless the last one was not read. */
    private hand(): void {
      const first = this.incoming[0];
      if (this.gone || this.unread.length > 0 || first === undefined) return;
      const part = first.payload.subarray(0, SOCKET_BYTES);
      first.payload = first.payload.subarray(part.length);
      const rest = first.payload.length;
      if (rest === 0) this.incoming.shift();
      this.unread = part.slice();
      this.options.onReadable(part.length, {
        more: rest > 0 || !first.final,
        binary: first.binary,
      });
      if (part.length === 0) this.hand();
    }
  };
