/**
 * Reads the frames that nearly every peer sends: a whole text message, a ping or a pong, masked. A
 * frame is unmasked where it lies, and the header under which the relay sends it on is written over
 * the end of its own, so a message that is forwarded is never copied. Whatever else may come
 * (fragments, binary, a close, reserved bits, no mask, more than the limit) is left to careful.ts.
 *
 * A chunk belongs to the reader: node reads into buffers of the right size and keeps none of them.
 */
import {
  FIN_PING,
  FIN_PONG,
  FIN_TEXT,
  headerLengthOf,
  MASK_BYTES,
  MASKED,
  MAX_CONTROL_PAYLOAD,
  readLength,
  writeTextHeader,
} from "./frames.ts";
import type { HeldBytes } from "./held-bytes.ts";
import { unmask } from "./unmask.ts";

const UNUSUAL = -1;
const MIN_HEADER_BYTES = 2;

/** Receives what was read, and tells the reader about the connection. */
export interface FrameSink {
  readonly maxMessageBytes: number;
  /** Bytes of frames that have begun, over all connections. */
  readonly heldBytes: HeldBytes;
  /** Whether the peer has authenticated. */
  readonly known: boolean;
  /** Asked before each frame: whether this reader is the one to read it. */
  readonly reading: boolean;
  /**
   * A text message, with the header of an unmasked frame before it in memory (`textFrame`).
   * `printable`: as `unmask` says.
   */
  message(payload: Buffer, printable: boolean): void;
  ping(payload: Buffer): void;
  pong(): void;
  /** A buffer of so many bytes was made for a frame that comes in pieces. */
  allocated(bytes: number): void;
  /** There is no room for the frame that has begun. */
  noRoom(): void;
}

/** One connection's reading position in the stream of frames. */
export class FrameReader {
  /** The frame of which only the beginning has come; nearly always there is none. */
  #begun: Begun | null = null;
  /** Whether a frame was handed on that lies in the last chunk. */
  usedInPlace = false;

  /**
   * Takes what arrived. Answers what it leaves to another reader, null for nothing; once it has
   * left something it must not be asked again.
   */
  take(chunk: Buffer, sink: FrameSink): Buffer | null {
    let at = 0;
    this.usedInPlace = false;
    if (this.#begun !== null) {
      const unusual = this.#goOn(this.#begun, chunk, sink);
      if (typeof unusual !== "number") return unusual;
      at = unusual;
    }
    while (at < chunk.length) {
      if (!sink.reading) return chunk.subarray(at);
      const there = chunk.length - at;
      const size = extent(chunk, at, there, sink.maxMessageBytes);
      if (size === UNUSUAL) return chunk.subarray(at);
      if (size > there) {
        this.#begun = new Begun(size);
        return this.#add(this.#begun, chunk, at, there, sink) ? null : chunk.subarray(at);
      }
      this.usedInPlace = true;
      deliver(chunk, at, size, sink);
      at += size;
    }
    return null;
  }

  /** Hands over the received part of an unfinished frame to another reader; null for none. */
  leave({ heldBytes }: FrameSink): Buffer | null {
    const begun = this.#begun;
    if (begun === null) return null;
    this.#begun = null;
    heldBytes.add(-begun.bytes.length);
    return begun.bytes.subarray(0, begun.filled);
  }

  /** The begun frame first. Answers where it ended in the chunk, or what another is to read. */
  #goOn(begun: Begun, chunk: Buffer, sink: FrameSink): number | Buffer {
    let at = 0;
    for (;;) {
      const n = Math.min(begun.size - begun.filled, chunk.length - at);
      if (!this.#add(begun, chunk, at, n, sink)) return chunk.subarray(at);
      at += n;
      if (begun.filled < begun.size) return at;
      const size = extent(begun.bytes, 0, begun.filled, sink.maxMessageBytes);
      if (size === UNUSUAL || size === begun.filled) {
        const bytes = this.leave(sink) as Buffer;
        if (size === UNUSUAL) return Buffer.concat([bytes, chunk.subarray(at)]);
        deliver(bytes, 0, size, sink);
        return at;
      }
      begun.size = size;
    }
  }

  /** False if there was no room; then the sink was notified and nothing was added. */
  #add(begun: Begun, chunk: Buffer, at: number, n: number, sink: FrameSink): boolean {
    const more = begun.missing(n);
    sink.heldBytes.add(more);
    if (more > 0 && !sink.heldBytes.allows(begun.bytes.length + more, sink.known)) {
      sink.heldBytes.add(-more);
      sink.noRoom();
      return false;
    }
    if (more > 0) sink.allocated(more); // the smaller buffer is freed
    begun.add(chunk, at, n, more);
    return true;
  }
}

/**
 * The beginning of a frame, in a buffer of its own: as a view it would keep its whole chunk alive.
 * The buffer grows with what comes, to at most twice that, however long the frame says it is; a
 * peer that sends byte by byte makes it grow seldom.
 */
class Begun {
  /** Bytes of the frame, or of as much as has to be there to say more. */
  size: number;
  filled = 0;
  bytes: Buffer = Buffer.alloc(0);

  constructor(size: number) {
    this.size = size;
  }

  /** By how much the buffer has to grow to take `n` bytes. */
  missing(n: number): number {
    const { bytes, filled, size } = this;
    const wanted = filled + n;
    return wanted <= bytes.length ? 0 : Math.min(size, 2 * wanted) - bytes.length;
  }

  add(chunk: Buffer, at: number, n: number, more: number): void {
    if (more > 0) {
      const grown = Buffer.allocUnsafeSlow(this.bytes.length + more); // a pool would live with it
      this.bytes.copy(grown, 0, 0, this.filled);
      (this.bytes.buffer as ArrayBuffer).transfer(0);
      this.bytes = grown;
    }
    chunk.copy(this.bytes, this.filled, at, at + n);
    this.filled += n;
  }
}

/**
 * How many bytes the frame at `at` has. Where the bytes that are there do not say: how many it
 * takes for them to say more. UNUSUAL where it is not for this reader.
 */
const extent = (bytes: Buffer, at: number, there: number, limit: number): number => {
  if (there < MIN_HEADER_BYTES) return MIN_HEADER_BYTES;
  const first = bytes[at] as number;
  const second = bytes[at + 1] as number;
  const usual = first === FIN_TEXT || first === FIN_PING || first === FIN_PONG;
  if (!usual || second < MASKED) return UNUSUAL;
  const header = headerLengthOf(second);
  if (there < header) return header;
  const length = readLength(bytes, at);
  return length > (first === FIN_TEXT ? limit : MAX_CONTROL_PAYLOAD) ? UNUSUAL : header + length;
};

/** Hands on the frame at `at`, all of which is there. */
const deliver = (bytes: Buffer, at: number, size: number, sink: FrameSink): void => {
  const first = bytes[at] as number;
  const from = at + headerLengthOf(bytes[at + 1] as number);
  const to = at + size;
  const printable = unmask(bytes, from, to, from - MASK_BYTES);
  if (first === FIN_PONG) {
    sink.pong();
  } else if (first === FIN_PING) {
    sink.ping(bytes.subarray(from, to));
  } else {
    writeTextHeader(bytes, from, to - from);
    sink.message(bytes.subarray(from, to), printable);
  }
};
