/**
 * Finds the payloads of a server's frames without decoding them, as cheaply as a load generator
 * must; their text is read only during a peer's hello. What it sends is built once, by the
 * simulator's codec.
 */

const LENGTH_16 = 126;
const LENGTH_64 = 127;

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
