/**
 * Reads anything a peer may send. A connection uses this reader from its first unusual frame, or
 * from the relay's close, to its end. ws's own receiver implements RFC 6455; the filter in front of
 * it bounds what a connection can hold.
 */
import type { Writable } from "node:stream";
import { MAX_FRAGMENTS } from "@blindrelay/protocol";
import * as ws from "ws";
import { contained } from "../base/contain.ts";
import { type FrameFault, FrameFilter, type FrameFilterOptions } from "./frame-filter.ts";

/**
 * Exported by ws, but missing from its types. Emits what it read as events, before `write` returns.
 */
interface Receiver extends Writable {
  on(event: "message", hear: (data: Buffer, isBinary: boolean) => void): this;
  on(event: "ping", hear: (data: Buffer) => void): this;
  on(event: "conclude", hear: (code: number, reason: Buffer) => void): this;
  on(event: "error", hear: (error: Error) => void): this;
}
const { Receiver } = ws as unknown as {
  Receiver: new (options: Readonly<Record<string, unknown>>) => Receiver;
};

/** The code that ws reports for a close frame without one; it is never sent (section 7.4.1). */
const NO_CODE = 1005;

const NOTHING = Buffer.alloc(0);

export interface CarefulSink {
  /** `data` belongs to the sink. */
  carefulMessage(data: Buffer, isBinary: boolean): void;
  ping(payload: Buffer): void;
  /** The peer's close frame; `code` is null if it has none. The last call. */
  closeReceived(code: number | null, reason: Buffer): void;
  /** The peer broke RFC 6455. The last call. */
  broken(): void;
}

export class CarefulReader {
  readonly #filter: FrameFilter;
  readonly #receiver: Receiver;
  /** Further input is ignored. */
  #over = false;

  constructor(options: FrameFilterOptions & { maxMessageBytes: number }, sink: CarefulSink) {
    const onMessage = contained("connection", "a link failed on a message", sink.carefulMessage);
    const onPing = contained("connection", "a link failed on a ping", sink.ping);
    const end = (code: number | null, reason: Buffer) => {
      this.#over = true;
      if (code === null) sink.broken();
      else sink.closeReceived(code === NO_CODE ? null : code, reason);
    };
    const onEnd = contained("connection", "a link failed on a close", end);
    this.#filter = new FrameFilter(options);
    this.#receiver = new Receiver({
      isServer: true,
      // The filter lets one byte more than the limit through, which the hub answers with TOO_LARGE.
      maxPayload: options.maxMessageBytes + 1,
      maxFragments: MAX_FRAGMENTS, // the filter counts them too, and names the reason
      // The hub answers BAD_MESSAGE to invalid UTF-8; ws would close.
      skipUTF8Validation: true,
    })
      .on("message", onMessage.bind(sink))
      .on("ping", onPing.bind(sink))
      .on("conclude", onEnd)
      .on("error", onEnd.bind(undefined, null, NOTHING));
  }

  /** See FrameFilter. */
  get unfinishedMessage(): number {
    return this.#filter.unfinishedMessage;
  }

  /** Takes received bytes; for `known` and the result see FrameFilter. */
  take(chunk: Buffer, known: boolean): FrameFault | null {
    return this.#filter.take(chunk, (bytes) => this.#over || this.#receiver.write(bytes), known);
  }

  /** The relay closes: from now on only the peer's close frame counts. */
  end(): void {
    this.#filter.end();
  }
}
