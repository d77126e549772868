/**
 * The parts of RFC 6455 that a load generator needs: masked frames that are built once and sent
 * often, and the lengths of unmasked ones. A frame's text is read only during a peer's hello.
 */

const LENGTH_16 = 126;
const LENGTH_64 = 127;
const MASK = Buffer.from([0x5a, 0xc3, 0x91, 0x0e]);

/** A complete masked frame. `opcode`: 1 text, 2 binary. */
export function maskedFrame(payload: Buffer, opcode: 1 | 2): Buffer {
  const { length } = payload;
  const head = length < LENGTH_16 ? [length] : [LENGTH_16, length >> 8, length & 255];
  if (length > 0xffff) throw new RangeError("the generator sends frames up to 65,535 bytes");
  const frame = Buffer.concat([
    Buffer.from([0x80 | opcode, 0x80 | (head[0] as number), ...head.slice(1)]),
    MASK,
    payload,
  ]);
  const start = frame.length - length;
  for (let i = 0; i < length; i++) {
    frame[start + i] = (payload[i] as number) ^ (MASK[i & 3] as number);
  }
  return frame;
}

/** Receives a part of a payload: `bytes` from `from` to before `to`, valid only during the call. */
export interface Taker {
  take(bytes: Buffer, from: number, to: number): void;
}

/** Finds the payloads of frames in a server's stream, however it was cut. */
export class FrameSplitter {
  /** Bytes of an incomplete header, at most 10. */
  private readonly head = Buffer.alloc(10);
  private headLength = 0;
  /** Bytes left of the current frame's payload. */
  private left = 0;

  /** Passes the payloads in the first `length` bytes to `taker`. */
  split(bytes: Buffer, length: number, taker: Taker): void {
    let at = 0;
    while (at < length) {
      if (this.left > 0) {
        const to = Math.min(at + this.left, length);
        this.left -= to - at;
        taker.take(bytes, at, to);
        at = to;
      } else if (this.headLength === 0 && length - at >= WHOLE_HEAD && isUsual(bytes, at)) {
        const short = (bytes[at + 1] as number) & 127;
        this.left = short < LENGTH_16 ? short : bytes.readUInt16BE(at + 2);
        at += short < LENGTH_16 ? 2 : 4;
      } else {
        this.head[this.headLength++] = bytes[at++] as number;
        const left = this.payloadLength();
        if (left === null) continue;
        if (((this.head[0] as number) & 15) === 8) {
          throw new Error("the server closed a connection");
        }
        this.headLength = 0;
        this.left = left;
      }
    }
  }

  /** The current frame's length if its header is complete, otherwise null. */
  private payloadLength(): number | null {
    if (this.headLength < 2) return null;
    const short = (this.head[1] as number) & 127;
    if (short < LENGTH_16) return short;
    if (short === LENGTH_64) return this.headLength < 10 ? null : this.head.readUInt32BE(6);
    return this.headLength < 4 ? null : this.head.readUInt16BE(2);
  }
}

/** Bytes of the longest header of an ordinary frame. */
const WHOLE_HEAD = 4;

/** Whether the frame at `at` is text or binary, and below 64 KB. */
function isUsual(bytes: Buffer, at: number): boolean {
  return ((bytes[at] as number) & 15) < 3 && ((bytes[at + 1] as number) & 127) !== LENGTH_64;
}
