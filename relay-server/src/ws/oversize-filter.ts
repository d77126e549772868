/**
 * Cuts every message over the limit down to one byte more than the limit, before ws sees it. ws
 * would close with 1009; section 3 wants `TOO_LARGE` and the connection kept, however long the
 * message is. So a message of 100 MB costs no more memory than one of 64 KiB, arrives in its place
 * among the others, and the hub needs to know of nothing but its length.
 */
import { isControl, readFrameHead, withLength } from "./frames.ts";

const NOTHING = Buffer.alloc(0);

/** One connection's reading position in the stream of frames. */
export class OversizeFilter {
  readonly #maxLength: number;
  /** The beginning of a header whose end has not arrived. */
  #rest = NOTHING;
  /** Payload bytes of the current frame that pass, and that are dropped after those. */
  #pass = 0;
  #drop = 0;
  /** Payload bytes that have passed of the message under way, over its frames. */
  #passed = 0;

  constructor(maxMessageBytes: number) {
    this.#maxLength = maxMessageBytes + 1;
  }

  /** Hands on what arrived, in one piece when nothing had to be cut. */
  take(chunk: Buffer, deliver: (bytes: Buffer) => void): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = NOTHING;
    let from = 0; // of what is to be delivered as it is
    let at = 0;
    const flush = (): void => {
      if (at > from) deliver(bytes.subarray(from, at));
    };
    while (at < bytes.length) {
      if (this.#pass > 0) {
        const n = Math.min(this.#pass, bytes.length - at);
        this.#pass -= n;
        at += n;
      } else if (this.#drop > 0) {
        flush();
        const n = Math.min(this.#drop, bytes.length - at);
        this.#drop -= n;
        at += n;
        from = at;
      } else {
        const head = readFrameHead(bytes, at);
        if (head === null) {
          flush();
          this.#rest = Buffer.from(bytes.subarray(at)); // copied: a view would keep the chunk alive
          return;
        }
        const allowed = isControl(head.opcode) ? head.payloadLength : this.#allow(head);
        if (allowed < head.payloadLength) {
          flush();
          deliver(withLength(bytes, at, head, allowed));
          from = at + head.headerLength;
        }
        this.#pass = allowed;
        this.#drop = head.payloadLength - allowed;
        at += head.headerLength;
      }
    }
    flush();
  }

  /** How many bytes of a data frame may pass. */
  #allow(head: { payloadLength: number; fin: boolean }): number {
    const allowed = Math.min(head.payloadLength, this.#maxLength - this.#passed);
    this.#passed = head.fin ? 0 : this.#passed + allowed;
    return allowed;
  }
}
