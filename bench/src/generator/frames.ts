/**
 * As much of RFC 6455 as a load generator needs: masked frames made once and sent often, and the
 * lengths of unmasked ones. Text of a frame is looked at only while a peer says hello.
 */

const LENGTH_16 = 126;
const LENGTH_64 = 127;
const MASK = Buffer.from([0x5a, 0xc3, 0x91, 0x0e]);

/** A whole masked frame. `opcode`: 1 text, 2 binary. */
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

/** Splits a server's stream into frames, however it was cut. */
export class FrameSplitter {
  /** Bytes of the header so far, at most 10. */
  private readonly head = Buffer.alloc(10);
  private headLength = 0;
  /** Of the present frame's payload. */
  private left = 0;
  private length = 0;

  /** `part`: a piece of the payload of a frame that has `length` bytes in all. */
  split(chunk: Buffer, part: (piece: Buffer, length: number, ends: boolean) => void): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.left > 0) {
        const taken = Math.min(this.left, chunk.length - at);
        this.left -= taken;
        part(chunk.subarray(at, at + taken), this.length, this.left === 0);
        at += taken;
        continue;
      }
      this.head[this.headLength++] = chunk[at++] as number;
      const length = this.payloadLength();
      if (length === null) continue;
      if (((this.head[0] as number) & 15) === 8) throw new Error("the server closed a connection");
      this.headLength = 0;
      this.left = this.length = length;
    }
  }

  /** Of the frame whose header is whole; null before. */
  private payloadLength(): number | null {
    if (this.headLength < 2) return null;
    const short = (this.head[1] as number) & 127;
    if (short < LENGTH_16) return short;
    if (short === LENGTH_64) return this.headLength < 10 ? null : this.head.readUInt32BE(6);
    return this.headLength < 4 ? null : this.head.readUInt16BE(2);
  }
}
