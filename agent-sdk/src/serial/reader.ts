/** Finds the frames in the bytes of a line, in whatever pieces they arrive. */
import { type Checksum, decodeFrame, frameBytes } from "./frames.ts";

export interface FrameCounters {
  frames: number;
  /** Pieces between two zeros that are no frame: noise, a damaged frame, console output. */
  garbage: number;
}

export class FrameReader {
  readonly counters: FrameCounters = { frames: 0, garbage: 0 };
  private readonly buffer: Uint8Array;
  private readonly checksum: Checksum;
  private readonly found: (type: number, body: Uint8Array) => void;
  private length = 0;
  private skipping = false;

  /** `maxBody`: bytes; longer frames are ignored. `found`: the body is valid only meanwhile. */
  constructor(
    maxBody: number,
    checksum: Checksum,
    found: (type: number, body: Uint8Array) => void,
  ) {
    this.buffer = new Uint8Array(frameBytes(maxBody));
    this.checksum = checksum;
    this.found = found;
  }

  receive(bytes: Uint8Array): void {
    let from = 0;
    while (from < bytes.length) {
      const zero = bytes.indexOf(0, from);
      const end = zero < 0 ? bytes.length : zero;
      if (this.length + end - from > this.buffer.length) this.skipping = true;
      else if (!this.skipping) {
        this.buffer.set(bytes.subarray(from, end), this.length);
        this.length += end - from;
      }
      if (zero < 0) return;
      this.border();
      from = end + 1;
    }
  }

  private border(): void {
    const stuffed = this.buffer.subarray(0, this.length);
    const skipped = this.skipping;
    this.length = 0;
    this.skipping = false;
    if (stuffed.length === 0 && !skipped) return;
    const frame = skipped ? null : decodeFrame(stuffed, this.checksum);
    if (frame === null) {
      this.counters.garbage++;
      return;
    }
    this.counters.frames++;
    this.found(frame[0] as number, frame.subarray(1));
  }
}
