/**
 * Sits between a socket and the reader of its frames, and bounds what one connection can hold:
 *
 * - A message over the limit is cut down to one byte more than the limit. ws would close with 1009;
 *   section 3 requires `TOO_LARGE` and an open connection, however long the message is. So a
 *   message of 100 MB costs no more memory than one of 64 KiB and keeps its place among the others.
 * - A message has at most MAX_FRAGMENTS fragments, and frames that carry no message of their own
 *   (fragments, control frames) have a rate.
 * - The reader gets only whole frames. A fragment, and a frame that arrives in pieces, is copied
 *   into a buffer of its own: a view would keep the 64 KiB chunk alive in which it arrived.
 */
import {
  MAX_FRAGMENTS,
  MAX_MESSAGE_BYTES,
  RATE_BURST,
  RATE_PER_SECOND,
} from "@blindrelay/protocol";
import { RateBucket } from "../core/limits/rate-limit.ts";
import { isControl, MAX_CONTROL_PAYLOAD, OP_CLOSE, readFrameHead, withLength } from "./frames.ts";
import type { HeldBytes } from "./held-bytes.ts";

const NOTHING = Buffer.alloc(0);

/**
 * Why a connection has to end; `frames`: it broke a rule, `memory`: the relay has no room for it
 * now.
 */
export type FrameFault =
  | { readonly kind: "frames"; readonly detail: string }
  | { readonly kind: "memory" };

const TOO_MANY_FRAGMENTS: FrameFault = {
  kind: "frames",
  detail: `A message may have at most ${MAX_FRAGMENTS} fragments`,
};
export const TOO_MANY_FRAMES: FrameFault = {
  kind: "frames",
  detail: "Too many control frames or fragments a second",
};
const NO_MEMORY: FrameFault = { kind: "memory" };

export interface FrameFilterOptions {
  readonly maxMessageBytes?: number;
  /** For frames that carry no message of their own. */
  readonly ratePerSecond?: number;
  readonly rateBurst?: number;
  /** Shared by all connections; absent: there is no common limit. */
  readonly heldBytes?: HeldBytes;
  /** Milliseconds; called only for frames that have a rate. */
  readonly nowMs: () => number;
  /** The rate of such frames, if some have been counted before. */
  readonly rate?: RateBucket | null;
}

/** One connection's reading position in the stream of frames. */
export class FrameFilter {
  readonly #maxLength: number;
  readonly #heldBytes: HeldBytes | null;
  readonly #nowMs: () => number;
  readonly #rate: RateBucket;
  readonly #ratePerSecond: number;
  readonly #rateBurst: number;
  /** The beginning of a header whose end has not arrived. */
  #rest: Buffer = NOTHING;
  /**
   * The current frame, if it has a buffer of its own: filled up to `#filled`, complete at `#size`.
   */
  #own: Buffer | null = null;
  #filled = 0;
  #size = 0;
  /** Payload bytes of the current frame that are dropped. */
  #drop = 0;
  /** Payload bytes of the current message that have passed, over its frames. */
  #passed = 0;
  /** Frames of the current, incomplete message. */
  #fragments = 0;
  /** How many fragmented messages have begun. */
  #begun = 0;
  /** Bytes of the unfinished message that are kept here or by the reader. */
  #held = 0;
  /** Describes the unfinished frame. */
  #control = false;
  #endsMessage = false;
  #ended = false;

  constructor({
    maxMessageBytes = MAX_MESSAGE_BYTES,
    ratePerSecond = RATE_PER_SECOND,
    rateBurst = RATE_BURST,
    heldBytes,
    nowMs,
    rate,
  }: FrameFilterOptions) {
    this.#maxLength = maxMessageBytes + 1;
    this.#heldBytes = heldBytes ?? null;
    this.#nowMs = nowMs;
    this.#ratePerSecond = ratePerSecond;
    this.#rateBurst = rateBurst;
    this.#rate = rate ?? new RateBucket(rateBurst, nowMs());
  }

  /** The number of the message that is still missing its last fragment; else 0. */
  get unfinishedMessage(): number {
    return this.#fragments > 0 ? this.#begun : 0;
  }

  /** The connection ends: from now on only the peer's close frame passes. */
  end(): void {
    this.#ended = true;
    if (this.#own !== null) {
      this.#drop += this.#size - this.#filled;
      this.#own = null;
    }
    this.#release();
  }

  #release(): void {
    this.#heldBytes?.add(-this.#held);
    this.#held = 0;
  }

  /**
   * Passes on what arrived, in one piece if no frame had to be changed or copied. `known`: the peer
   * has authenticated, and so is not subject to the common limit. A fault is returned once; `end`
   * follows.
   */
  take(chunk: Buffer, deliver: (bytes: Buffer) => void, known = true): FrameFault | null {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = NOTHING;
    let from = 0; // start of what is passed on unchanged
    let at = 0;
    const flush = (): void => {
      if (at > from) deliver(bytes.subarray(from, at));
    };
    while (at < bytes.length) {
      if (this.#own !== null) {
        const n = Math.min(this.#size - this.#filled, bytes.length - at);
        if (!this.#fill(bytes, at, n, known)) return NO_MEMORY;
        at += n;
        from = at;
        if (this.#filled === this.#size) this.#deliverOwn(deliver);
        continue;
      }
      if (this.#drop > 0) {
        const n = Math.min(this.#drop, bytes.length - at);
        this.#drop -= n;
        at += n;
        from = at;
        continue;
      }
      const head = readFrameHead(bytes, at);
      if (head === null) {
        flush();
        this.#rest = Buffer.from(bytes.subarray(at)); // copied: a view would keep the chunk alive
        return null;
      }
      const { fin, opcode, headerLength, payloadLength } = head;
      const control = isControl(opcode);
      const alone = fin && opcode !== 0;
      if ((control || !fin) && !this.#ended) {
        const fault = this.#count(control);
        if (fault !== null) {
          flush();
          return fault;
        }
      }
      let allowed = control ? payloadLength : this.#allow(payloadLength, fin);
      if (control && payloadLength > MAX_CONTROL_PAYLOAD) allowed = 0; // malformed
      if (this.#ended && opcode !== OP_CLOSE) {
        flush();
        this.#drop = payloadLength;
        at += headerLength;
        from = at;
        continue;
      }
      const length = headerLength + payloadLength;
      if (alone && allowed === payloadLength && at + length <= bytes.length) {
        at += length; // nearly every frame: complete, and passed on in place
        continue;
      }
      flush();
      const cut = allowed < payloadLength && !control;
      const header = cut
        ? withLength(bytes, at, head, allowed)
        : bytes.subarray(at, at + headerLength);
      this.#control = control;
      this.#endsMessage = fin && !control;
      this.#drop = payloadLength - allowed;
      this.#size = header.length + allowed;
      this.#filled = 0;
      at += headerLength;
      from = at;
      const here = Math.min(allowed, bytes.length - at);
      this.#own = NOTHING;
      if (!this.#fill(header, 0, header.length, known, here)) return NO_MEMORY;
      if (this.#filled === this.#size) this.#deliverOwn(deliver);
    }
    flush();
    return null;
  }

  /** How many bytes of a data frame may pass. */
  #allow(payloadLength: number, fin: boolean): number {
    const allowed = Math.min(payloadLength, this.#maxLength - this.#passed);
    this.#passed = fin ? 0 : this.#passed + allowed;
    return allowed;
  }

  /** Counts a frame that carries no message of its own. */
  #count(control: boolean): FrameFault | null {
    // Of a message only the first fragment: the others are limited in number, and the hub limits
    // the rate of whole messages.
    const rated = control || this.#fragments === 0;
    if (rated && !this.#rate.take(this.#ratePerSecond, this.#rateBurst, this.#nowMs())) {
      return TOO_MANY_FRAMES;
    }
    if (control) return null;
    if (this.#fragments === 0) this.#begun += 1;
    this.#fragments += 1;
    // the last fragment adds one more
    return this.#fragments >= MAX_FRAGMENTS ? TOO_MANY_FRAGMENTS : null;
  }

  /**
   * Copies into the frame's own buffer, which grows with what arrives; `more`: bytes that follow.
   */
  #fill(source: Buffer, at: number, n: number, known: boolean, more = 0): boolean {
    const own = this.#own as Buffer;
    const wanted = this.#filled + n + more;
    if (wanted > own.length) {
      const size = Math.min(this.#size, Math.max(wanted, 2 * own.length));
      if (!this.#charge(size - own.length, known)) return false;
      const grown = Buffer.allocUnsafeSlow(size); // otherwise it would keep the pool's slab alive
      own.copy(grown, 0, 0, this.#filled);
      this.#own = grown;
    }
    source.copy(this.#own as Buffer, this.#filled, at, at + n);
    this.#filled += n;
    return true;
  }

  #charge(bytes: number, known: boolean): boolean {
    this.#held += bytes;
    if (this.#heldBytes === null) return true;
    this.#heldBytes.add(bytes);
    return this.#heldBytes.allows(this.#held, known);
  }

  #deliverOwn(deliver: (bytes: Buffer) => void): void {
    const whole = this.#own as Buffer;
    this.#own = null;
    if (this.#endsMessage) this.#fragments = 0;
    if (this.#fragments === 0) this.#release();
    else if (this.#control) this.#charge(-whole.length, true);
    deliver(whole);
  }
}
