/**
 * RFC 6455 frames on the client's side: outgoing frames are masked, incoming ones are not. Bytes
 * in, calls out; no sockets.
 *
 * The simulator holds 10,000 links in one process, so an idle reader holds no bytes: a complete
 * frame in the received chunk is read in place, and only the front part of an unfinished one is
 * copied. The relay sends unfragmented text (contract, section 2); fragments are still joined,
 * within the same size limit, because a proxy may split messages.
 *
 * Frame, section 5.2:  FIN RSV1-3 opcode(4) | MASK length(7) | [length 16 or 64, big-endian] |
 * [mask 4] | payload
 */
import { isAscii, isUtf8 } from "node:buffer";
import { randomFillSync } from "node:crypto";

export const OPCODE = {
  continuation: 0x0,
  text: 0x1,
  binary: 0x2,
  close: 0x8,
  ping: 0x9,
  pong: 0xa,
} as const;
export type Opcode = (typeof OPCODE)[keyof typeof OPCODE];

const MAX_CONTROL_BYTES = 125; // section 5.5
// A flood of empty fragments costs memory that the byte limit does not count.
const MAX_FRAGMENTS = 256;

/** A reader's events. `payload` is a view of the caller's chunk, valid only during the call. */
export interface FrameSink {
  text(text: string): void;
  ping(payload: Buffer): void;
  pong(): void;
  /**
   * The peer's close frame; 1005 if it contains no code (section 7.1.5). The reader reads nothing
   * after it.
   */
  peerClosed(code: number, reason: string): void;
  /**
   * The peer violated the protocol; `code` is for our own close frame. The reader reads nothing
   * after it.
   */
  broken(code: number, reason: string): void;
}

/** Reads the frames of one link from chunks of any size. */
export class FrameReader {
  private readonly maxMessageBytes: number;
  private held: Buffer | null = null;
  private heldBytes = 0;
  private fragments: Buffer[] | null = null;
  private fragmentBytes = 0;
  private ended = false;

  /** @param maxMessageBytes a longer message is `broken` with 1009, before its payload is stored */
  constructor(maxMessageBytes: number) {
    this.maxMessageBytes = maxMessageBytes;
  }

  /** Continues reading; `chunk` belongs to the caller, who may overwrite it after the call. */
  push(chunk: Buffer, sink: FrameSink): void {
    let at = this.held === null ? 0 : this.fill(chunk, sink);
    while (at < chunk.length && !this.ended) {
      const need = this.frameBytes(chunk, at, chunk.length, sink);
      if (this.ended) return;
      if (need > chunk.length - at) {
        this.held = Buffer.allocUnsafeSlow(need);
        this.heldBytes = chunk.copy(this.held, 0, at);
        return;
      }
      this.read(chunk.subarray(at, at + need), sink);
      at += need;
    }
  }

  /** Stops reading and releases its buffers. */
  end(): void {
    this.ended = true;
    this.held = null;
    this.fragments = null;
  }

  /** Completes the stored frame; returns how many bytes of `chunk` that took. */
  private fill(chunk: Buffer, sink: FrameSink): number {
    let at = 0;
    while (this.held !== null) {
      const copied = chunk.copy(this.held, this.heldBytes, at);
      this.heldBytes += copied;
      at += copied;
      if (this.heldBytes < this.held.length) return at;
      const need = this.frameBytes(this.held, 0, this.heldBytes, sink);
      if (this.ended) return at;
      const held: Buffer = this.held;
      if (need > held.length) {
        this.held = Buffer.allocUnsafeSlow(need);
        held.copy(this.held);
        continue;
      }
      this.held = null;
      this.read(held, sink);
    }
    return at;
  }

  /**
   * The number of bytes in the frame at `at`, as far as its header is known: more than are
   * available until the header is complete, then exact. Every error that a header alone can show
   * ends the reader here, before it waits for a payload.
   */
  private frameBytes(bytes: Buffer, at: number, end: number, sink: FrameSink): number {
    const there = end - at;
    if (there < 2) return 2;
    const first = bytes[at] as number;
    const second = bytes[at + 1] as number;
    const opcode = first & 0x0f;
    const length7 = second & 0x7f;
    if ((first & 0x70) !== 0) return this.refuse(1002, "reserved bits without an extension", sink);
    if ((second & 0x80) !== 0) return this.refuse(1002, "a masked frame from a server", sink);
    if (opcode >= 0x8) {
      if (opcode > 0xa) return this.refuse(1002, `unknown opcode ${opcode}`, sink);
      if ((first & 0x80) === 0) return this.refuse(1002, "a fragmented control frame", sink);
      if (length7 > MAX_CONTROL_BYTES)
        return this.refuse(1002, "a control frame over 125 bytes", sink);
      return 2 + length7;
    }
    if (opcode > 0x2) return this.refuse(1002, `unknown opcode ${opcode}`, sink);
    if (opcode === OPCODE.binary) return this.refuse(1003, "a binary message", sink);
    if ((opcode === OPCODE.continuation) !== (this.fragments !== null)) {
      return this.refuse(1002, "a fragment out of place", sink);
    }
    let header = 2;
    let length = length7;
    if (length7 === 126) {
      header = 4;
      if (there < header) return header;
      length = bytes.readUInt16BE(at + 2);
      if (length < 126) return this.refuse(1002, "a length not written in its shortest form", sink);
    } else if (length7 === 127) {
      header = 10;
      if (there < header) return header;
      length = bytes.readUInt32BE(at + 2) * 2 ** 32 + bytes.readUInt32BE(at + 6);
      if (length < 65_536)
        return this.refuse(1002, "a length not written in its shortest form", sink);
    }
    if (length + this.fragmentBytes > this.maxMessageBytes) {
      return this.refuse(1009, `a message over ${this.maxMessageBytes} bytes`, sink);
    }
    return header + length;
  }

  private read(frame: Buffer, sink: FrameSink): void {
    const first = frame[0] as number;
    const length7 = (frame[1] as number) & 0x7f;
    const payload = frame.subarray(length7 < 126 ? 2 : length7 === 126 ? 4 : 10);
    const opcode = first & 0x0f;
    if (opcode === OPCODE.ping) sink.ping(payload);
    else if (opcode === OPCODE.pong) sink.pong();
    else if (opcode === OPCODE.close) this.readClose(payload, sink);
    else this.readPart(payload, (first & 0x80) !== 0, sink);
  }

  private readPart(payload: Buffer, final: boolean, sink: FrameSink): void {
    if (final && this.fragments === null) {
      this.readText(payload, sink);
      return;
    }
    const fragments = this.fragments ?? [];
    if (fragments.length === MAX_FRAGMENTS) {
      this.refuse(1009, "a message in too many fragments", sink);
      return;
    }
    fragments.push(Buffer.from(payload));
    this.fragments = fragments;
    this.fragmentBytes += payload.length;
    if (!final) return;
    this.fragments = null;
    this.fragmentBytes = 0;
    this.readText(Buffer.concat(fragments), sink);
  }

  private readText(payload: Buffer, sink: FrameSink): void {
    if (isAscii(payload)) sink.text(payload.toString("latin1"));
    else if (isUtf8(payload)) sink.text(payload.toString());
    else this.refuse(1007, "a text message that is not UTF-8", sink);
  }

  private readClose(payload: Buffer, sink: FrameSink): void {
    if (payload.length === 0) {
      this.end();
      sink.peerClosed(1005, "");
      return;
    }
    const code = payload.length === 1 ? 0 : payload.readUInt16BE(0);
    const reason = payload.subarray(2);
    if (!isCloseCode(code) || !isUtf8(reason)) {
      this.refuse(1002, "a malformed close frame", sink);
      return;
    }
    this.end();
    sink.peerClosed(code, reason.toString());
  }

  private refuse(code: number, reason: string, sink: FrameSink): number {
    this.end();
    sink.broken(code, reason);
    return 0;
  }
}

/** One final, masked frame with `payload` (text: UTF-8). Control payloads are at most 125 bytes. */
export function encodeFrame(opcode: Opcode, payload: string | Uint8Array): Buffer {
  const length = typeof payload === "string" ? Buffer.byteLength(payload) : payload.length;
  if (opcode >= OPCODE.close && length > MAX_CONTROL_BYTES)
    throw new RangeError("control payload over 125 bytes");
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const body = 2 + lengthBytes + 4;
  const frame = Buffer.allocUnsafe(body + length);
  frame[0] = 0x80 | opcode;
  frame[1] = 0x80 | (lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127);
  if (lengthBytes === 2) frame.writeUInt16BE(length, 2);
  if (lengthBytes === 8) {
    frame.writeUInt32BE(Math.floor(length / 2 ** 32), 2);
    frame.writeUInt32BE(length % 2 ** 32, 6);
  }
  if (typeof payload === "string") frame.write(payload, body);
  else frame.set(payload, body);
  const mask = body - 4;
  drawMask(frame, mask);
  for (let i = 0; i < length; i++) {
    frame[body + i] = (frame[body + i] as number) ^ (frame[mask + (i & 3)] as number);
  }
  return frame;
}

/** A close frame; `reason` is cut to the size of a control frame, at a character's boundary. */
export function encodeClose(code: number, reason: string): Buffer {
  if (!isCloseCode(code)) return encodeFrame(OPCODE.close, "");
  const characters = [...reason];
  while (Buffer.byteLength(characters.join("")) > MAX_CONTROL_BYTES - 2) characters.pop();
  const payload = Buffer.from(`--${characters.join("")}`);
  payload.writeUInt16BE(code, 0);
  return encodeFrame(OPCODE.close, payload);
}

/** Codes that a close frame may contain: section 7.4, and 1012-1014 of the registry. */
function isCloseCode(code: number): boolean {
  return (
    (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code <= 4999)
  );
}

// Masks are taken from a pool: one call to the generator per 1,024 frames.
const maskPool = Buffer.alloc(4096);
let maskAt = maskPool.length;

function drawMask(frame: Buffer, at: number): void {
  if (maskAt === maskPool.length) {
    randomFillSync(maskPool);
    maskAt = 0;
  }
  maskPool.copy(frame, at, maskAt, maskAt + 4);
  maskAt += 4;
}
