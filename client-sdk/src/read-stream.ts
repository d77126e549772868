/** Bytes from an agent (streams.ts). */
import { STREAM_WINDOW_BYTES } from "./core/defaults.ts";
import type { PeerSession } from "./core/session.ts";
import { CallError } from "./errors.ts";
import { broken, CALLED_AGAIN, type Opening, openStream } from "./streams.ts";

/** Iterate once; leaving the loop early cancels it. */
export class ReadStream implements AsyncIterable<Uint8Array> {
  /** The result of the call that opened it. */
  readonly result: unknown;
  /** Bytes handed out so far. */
  taken = 0;
  private readonly chunks: Uint8Array[] = [];
  private readonly method: string;
  private readonly windowBytes: number;
  private stream: ReturnType<PeerSession["streams"]["incoming"]> | null = null;
  /** Undefined: still open; null: every byte has arrived. */
  private ending: string | null | undefined;
  private wake: () => void = () => undefined;

  private constructor(method: string, windowBytes: number) {
    this.method = method;
    this.windowBytes = windowBytes;
  }

  /** See Agent.readStream. */
  static async open(opening: Opening, windowBytes = STREAM_WINDOW_BYTES): Promise<ReadStream> {
    if (!(windowBytes >= 1 && windowBytes <= Number.MAX_SAFE_INTEGER)) {
      throw new CallError("BAD_ARGUMENT", "windowBytes must be 1 or more");
    }
    const reader = new ReadStream(opening.method, Math.floor(windowBytes));
    try {
      const result = await openStream(opening, (session) => reader.attach(session, opening.id));
      (reader as { result: unknown }).result = result;
    } catch (error) {
      reader.stream?.conclude("it was not opened");
      throw error;
    }
    reader.stream?.grant(reader.windowBytes);
    return reader;
  }

  /** The next bytes, or null after the last. Rejects with a CallError if the stream broke. */
  async read(): Promise<Uint8Array | null> {
    while (this.chunks.length === 0 && this.ending === undefined) {
      await new Promise<void>((resolve) => {
        // Others may wait already, and look first.
        const before = this.wake;
        this.wake = () => {
          before();
          resolve();
        };
      });
    }
    const chunk = this.chunks.shift();
    if (chunk !== undefined) {
      this.taken += chunk.length;
      this.stream?.grant(chunk.length);
      return chunk;
    }
    if (typeof this.ending === "string") throw broken(this.method, this.ending, this.taken);
    this.stream?.confirm();
    return null;
  }

  /** Cancels the stream; the agent gets the reason. A program without types may pass an error. */
  cancel(reason = "the reader left"): void {
    this.chunks.length = 0;
    this.stream?.abort(String(reason));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (let chunk = await this.read(); chunk !== null; chunk = await this.read()) yield chunk;
    } finally {
      this.cancel();
    }
  }

  private wakeAll(): void {
    const { wake } = this;
    this.wake = () => undefined;
    wake();
  }

  private attach(session: PeerSession, id: number): void {
    const before = this.stream;
    const stream = session.streams.incoming(id, {
      data: (bytes) => {
        this.chunks.push(bytes);
        this.wakeAll();
      },
      ended: (error) => {
        if (this.stream !== stream) return;
        this.ending = error;
        this.wakeAll();
      },
    });
    this.stream = stream;
    before?.conclude(CALLED_AGAIN);
  }
}
