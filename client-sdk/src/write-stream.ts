/**
 * Bytes to an agent (streams.ts). Small writes are gathered into one message: each message is one
 * of the session token's 10,000 requests.
 */
import { Alarm } from "@blindrelay/protocol/moving-link";
import type { ClientCore } from "./core/client-core.ts";
import { MAX_STREAM_CHUNK, WRITE_CREDIT_MS, WRITE_GATHER_MS } from "./core/defaults.ts";
import type { PeerSession } from "./core/session.ts";
import { CallError } from "./errors.ts";
import { broken, CALLED_AGAIN, type Opening, openStream, tell } from "./streams.ts";

interface Pending {
  bytes: Uint8Array;
  readonly resolve: () => void;
  readonly reject: (error: CallError) => void;
}

/** Also one of another realm, such as a frame's. */
const isBytes = (value: unknown): boolean =>
  Object.prototype.toString.call(value) === "[object Uint8Array]";

export class WriteStream {
  /** The result of the call that opened it. */
  readonly result: unknown;
  private readonly core: ClientCore;
  private readonly method: string;
  private readonly pending: Pending[] = [];
  private stream: ReturnType<PeerSession["streams"]["outgoing"]> | null = null;
  private finish: Pending | null = null;
  private failure: CallError | null = null;
  /** What is sent next: the front of `pending`, as far as there is credit for it. */
  private readonly chunk = new Uint8Array(MAX_STREAM_CHUNK);
  private filled = 0;
  /** When its first byte came, or more credit. */
  private since = 0;
  /** The most credit that the agent has given at a time. */
  private window = 0;
  private readonly alarm: Alarm;
  private onFailure: (error: CallError) => void = () => undefined;

  private readonly threw: (cause: unknown) => void;

  private constructor(core: ClientCore, method: string, threw: (cause: unknown) => void) {
    this.core = core;
    this.threw = threw;
    this.alarm = new Alarm(core.timer);
    this.method = method;
  }

  /** See Agent.writeStream. `threw`: gets what a listener throws. */
  static async open(opening: Opening, threw: (cause: unknown) => void): Promise<WriteStream> {
    const writer = new WriteStream(opening.core, opening.method, threw);
    try {
      const result = await openStream(opening, (session) => writer.attach(session, opening.id));
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
   * Resolves when the agent's credit allows the last byte to be sent, which happens within
   * milliseconds; await it before the next write.
   */
  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.failure !== null) reject(this.failure);
      else if (!isBytes(bytes)) reject(new CallError("BAD_ARGUMENT", "bytes are a Uint8Array"));
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

  /** Aborts the stream; the agent gets the reason. A program without types may pass an error. */
  abort(reason = "the writer left"): void {
    this.stream?.abort(String(reason));
  }

  /** Called once if the stream breaks, even while nothing is being written. */
  onBroken(fn: (error: CallError) => void): void {
    this.onFailure = fn;
    if (this.failure !== null) fn(this.failure);
  }

  private attach(session: PeerSession, id: number): void {
    const before = this.stream;
    const stream = session.streams.outgoing(id, {
      writable: () => {
        this.window = Math.max(this.window, this.stream?.credit ?? 0);
        this.since = this.core.timer.now();
        this.flush();
      },
      ended: (error) => {
        if (this.stream === stream) this.ended(error);
      },
    });
    this.stream = stream;
    before?.conclude(CALLED_AGAIN);
  }

  private flush(): void {
    const { stream } = this;
    if (stream === null) return;
    this.alarm.clear();
    for (;;) {
      this.fill(stream.credit);
      if (this.filled === 0) break;
      const waitMs = this.gatherMs(stream.credit) || this.core.paceMs();
      if (waitMs > 0) {
        this.alarm.set(waitMs, () => this.flush());
        return;
      }
      const chunk = this.chunk.subarray(0, this.filled);
      this.filled = 0;
      stream.write(chunk);
    }
    if (this.finish !== null && this.pending.length === 0) stream.end();
  }

  /** Takes over what may be sent, and with it the duty to send it. */
  private fill(credit: number): void {
    const limit = Math.min(this.chunk.length, credit);
    for (let first = this.pending[0]; first !== undefined; first = this.pending[0]) {
      const part = first.bytes.subarray(0, Math.max(0, limit - this.filled));
      if (this.filled === 0) this.since = this.core.timer.now();
      this.chunk.set(part, this.filled);
      this.filled += part.length;
      first.bytes = first.bytes.subarray(part.length);
      if (first.bytes.length > 0) return;
      this.pending.shift();
      first.resolve();
    }
  }

  /**
   * How long the chunk may still wait for more bytes, or for more credit: an agent grants in steps
   * of half its window, so there is more before the rest of it must be used.
   */
  private gatherMs(credit: number): number {
    const blocked = this.pending.length > 0;
    const isDue = blocked ? credit * 2 >= this.window : this.finish !== null;
    if (this.filled === this.chunk.length || isDue) return 0;
    const untilMs = this.since + (blocked ? WRITE_CREDIT_MS : WRITE_GATHER_MS);
    return Math.max(0, untilMs - this.core.timer.now());
  }

  private ended(error: string | null): void {
    this.alarm.clear();
    if (error === null) {
      this.finish?.resolve();
      return;
    }
    const failure = broken(this.method, error, this.sent);
    this.failure = failure;
    for (const { reject } of this.pending.splice(0)) reject(failure);
    this.finish?.reject(failure);
    tell(() => this.onFailure(failure), this.threw);
  }
}
