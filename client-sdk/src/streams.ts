/**
 * Byte streams with an agent, for programs: an async iterable of bytes, and a writer with promises
 * that apply the back-pressure. A stream either completes or fails with a CallError that states how
 * many bytes are known to have arrived; it is never truncated silently.
 */
import type { ClientCore } from "./core/client-core.ts";
import { STREAM_WINDOW_BYTES } from "./core/defaults.ts";
import type { Outcome } from "./core/jsonrpc.ts";
import type { Peer } from "./core/peer.ts";
import type { PeerSession } from "./core/session.ts";
import { CallError } from "./errors.ts";

export interface StreamOptions {
  /** Time limit for the answer to the call that opens the stream; defaults to 30,000 ms. */
  readonly timeoutMs?: number;
  /** For a reader: bytes that may arrive before the first is consumed; defaults to 262,144. */
  readonly windowBytes?: number;
}

interface Opening {
  readonly core: ClientCore;
  readonly peer: Peer;
  readonly method: string;
  readonly params: object;
  readonly timeoutMs: number;
  readonly id: number;
}

const broken = (method: string, error: string, bytes: number): CallError =>
  new CallError("OUTCOME_UNKNOWN", `the stream of ${method} broke after ${bytes} bytes: ${error}`);

/** Makes the call; `sent` gets the session, `failed` the reason why the stream did not open. */
const call = (
  { core, peer, method, params, timeoutMs, id }: Opening,
  sent: (session: PeerSession) => void,
): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const request = {
      method,
      params: { ...params, stream: id },
      timeoutMs,
      idempotent: false,
      sent,
    };
    core.call(peer, request, (outcome: Outcome) => {
      if (outcome.ok) resolve(outcome.result);
      else reject(outcome.error);
    });
  });

/** Bytes from an agent. Iterate once; leaving the loop early cancels it. */
export class ReadStream implements AsyncIterable<Uint8Array> {
  /** The result of the call that opened it. */
  readonly result: unknown;
  /** Bytes handed out so far. */
  taken = 0;
  private readonly chunks: Uint8Array[] = [];
  private readonly method: string;
  private readonly windowBytes: number;
  private stream: ReturnType<PeerSession["streams"]["incoming"]> | null = null;
  private session: PeerSession | null = null;
  private owed = 0;
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
      const result = await call(opening, (session) => reader.attach(session, opening.id));
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
        this.wake = resolve;
      });
    }
    const chunk = this.chunks.shift();
    if (chunk !== undefined) {
      this.took(chunk.length);
      return chunk;
    }
    if (typeof this.ending === "string") throw broken(this.method, this.ending, this.taken);
    this.stream?.confirm();
    this.session?.streams.settle();
    return null;
  }

  /** Cancels the stream; the agent gets the reason. */
  cancel(reason = "the reader left"): void {
    this.chunks.length = 0;
    this.stream?.abort(reason);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (let chunk = await this.read(); chunk !== null; chunk = await this.read()) yield chunk;
    } finally {
      this.cancel();
    }
  }

  private attach(session: PeerSession, id: number): void {
    this.session = session;
    this.stream = session.streams.incoming(id, {
      data: (bytes) => {
        this.chunks.push(bytes);
        this.wake();
      },
      ended: (error) => {
        this.ending = error;
        this.wake();
      },
    });
  }

  /** Grants new credit for consumed bytes, half a window at a time. */
  private took(bytes: number): void {
    this.taken += bytes;
    this.owed += bytes;
    if (this.owed * 2 < this.windowBytes && this.chunks.length > 0) return;
    if (this.owed * 2 < this.windowBytes && (this.stream?.credit ?? 0) > this.owed) return;
    const { owed } = this;
    this.owed = 0;
    this.stream?.grant(owed);
  }
}

interface Pending {
  bytes: Uint8Array;
  readonly resolve: () => void;
  readonly reject: (error: CallError) => void;
}

/** Bytes to an agent. */
export class WriteStream {
  /** The result of the call that opened it. */
  readonly result: unknown;
  private readonly core: ClientCore;
  private readonly method: string;
  private readonly pending: Pending[] = [];
  private stream: ReturnType<PeerSession["streams"]["outgoing"]> | null = null;
  private finish: Pending | null = null;
  private failure: CallError | null = null;
  private paceTimer: unknown = null;
  private onFailure: (error: CallError) => void = () => undefined;

  private constructor(core: ClientCore, method: string) {
    this.core = core;
    this.method = method;
  }

  /** See Agent.writeStream. */
  static async open(opening: Opening): Promise<WriteStream> {
    const writer = new WriteStream(opening.core, opening.method);
    try {
      const result = await call(opening, (session) => writer.attach(session, opening.id));
      (writer as { result: unknown }).result = result;
    } catch (error) {
      writer.stream?.conclude("it was not opened");
      throw error;
    }
    return writer;
  }

  /** Bytes sent so far; some of them may not have arrived. */
  get sent(): number {
    return this.stream?.sent ?? 0;
  }

  /**
   * Resolves when the agent's credit allowed the last byte to be sent; await it before the next
   * write.
   */
  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.failure !== null) reject(this.failure);
      else if (this.finish !== null) reject(new CallError("BAD_ARGUMENT", "written after end"));
      else {
        this.pending.push({ bytes, resolve, reject });
        this.flush();
      }
    });
  }

  /** Resolves when the agent confirms that it has stored every byte. */
  end(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.failure !== null) reject(this.failure);
      else if (this.finish !== null) reject(new CallError("BAD_ARGUMENT", "ended twice"));
      else {
        this.finish = { bytes: new Uint8Array(0), resolve, reject };
        this.flush();
      }
    });
  }

  /** Aborts the stream; the agent gets the reason. */
  abort(reason = "the writer left"): void {
    this.stream?.abort(reason);
  }

  /** Called once if the stream breaks, even while nothing is being written. */
  onBroken(fn: (error: CallError) => void): void {
    this.onFailure = fn;
    if (this.failure !== null) fn(this.failure);
  }

  private attach(session: PeerSession, id: number): void {
    this.stream = session.streams.outgoing(id, {
      writable: () => this.flush(),
      ended: (error) => this.ended(error),
    });
  }

  private flush(): void {
    const { stream } = this;
    if (stream === null || this.paceTimer !== null) return;
    while (this.pending.length > 0) {
      const waitMs = this.core.paceMs();
      if (waitMs > 0) {
        this.paceTimer = this.core.timer.set(waitMs, () => {
          this.paceTimer = null;
          this.flush();
        });
        return;
      }
      const first = this.pending[0] as Pending;
      first.bytes = first.bytes.subarray(stream.write(first.bytes));
      if (first.bytes.length > 0) return;
      this.pending.shift();
      first.resolve();
    }
    if (this.finish !== null) stream.end();
  }

  private ended(error: string | null): void {
    if (error === null) {
      this.finish?.resolve();
      return;
    }
    const failure = broken(this.method, error, this.sent);
    this.failure = failure;
    for (const { reject } of this.pending.splice(0)) reject(failure);
    this.finish?.reject(failure);
    this.onFailure(failure);
  }
}
