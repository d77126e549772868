/**
 * Reads the frames that nearly every peer sends: a complete text message, a ping or a pong, masked.
 * A frame is unmasked in place, and the header of the relay's outgoing frame is written over the
 * end of the received one, so a forwarded message is never copied. Everything else (fragments,
 * binary, a close, reserved bits, no mask, more than the limit) is left to careful.ts.
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
  /** Asked before each frame: whether this reader is still in use. */
  readonly reading: boolean;
  /**
   * A text message, with the header of an unmasked frame before it in memory (`textFrame`).
   * `printable`: see `unmask`.
   */
  message(payload: Buffer, printable: boolean): void;
  ping(payload: Buffer): void;
  pong(): void;
  /** A buffer of this many bytes was allocated for a frame that arrives in pieces. */
  allocated(bytes: number): void;
  /** There is no room for the frame that has begun. */
  noRoom(): void;
}

/** One connection's reading position in the stream of frames. */
export class FrameReader {
  /** The incomplete frame; nearly always there is none. */
  #begun: Begun | null = null;
  /** Whether a frame was passed on that is part of the last chunk. */
  usedInPlace = false;

  /**
   * Takes received bytes. Returns what it leaves to another reader, or null; after that it must not
   * be called again.
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

  /** Passes the received part of an unfinished frame to another reader; null if there is none. */
  leave({ heldBytes }: FrameSink): Buffer | null {
    const begun = this.#begun;
    if (begun === null) return null;
    this.#begun = null;
    heldBytes.add(-begun.bytes.length);
    return begun.bytes.subarray(0, begun.filled);
  }

  /**
   * Continues with the begun frame. Returns where it ended in the chunk, or the bytes for another
   * reader.
   */
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
 * The beginning of a frame, in a buffer of its own: a view would keep its whole chunk alive. The
 * buffer grows with what arrives, to at most twice that, whatever length the frame announces, so
 * that a peer that sends byte by byte rarely makes it grow.
 */
class Begun {
  /** Bytes of the frame, or as many as are needed to learn more. */
  size: number;
  filled = 0;
  bytes: Buffer = Buffer.alloc(0);

  constructor(size: number) {
    this.size = size;
  }

  /** By how much the buffer has to grow to hold `n` more bytes. */
  missing(n: number): number {
    const { bytes, filled, size } = this;
    const wanted = filled + n;
    return wanted <= bytes.length ? 0 : Math.min(size, 2 * wanted) - bytes.length;
  }

  add(chunk: Buffer, at: number, n: number, more: number): void {
    if (more > 0) {
      const grown = Buffer.allocUnsafeSlow(this.bytes.length + more); // would keep a pool alive
      this.bytes.copy(grown, 0, 0, this.filled);
      (this.bytes.buffer as ArrayBuffer).transfer(0);
      this.bytes = grown;
    }
    chunk.copy(this.bytes, this.filled, at, at + n);
    this.filled += n;
  }
}

/**
 * The length of the frame at `at`. If the available bytes do not show it: how many are needed to
 * learn more. UNUSUAL if the frame is not for this reader.
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

/** Passes on the complete frame at `at`. */
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
