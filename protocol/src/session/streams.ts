/**
 * Byte streams inside a session (section 2, "Inside a packet"): notifications in both directions,
 * each stream one way.
 *
 *   sender   -> receiver  stream.data   {stream, data: base64}
 *   receiver -> sender    stream.credit {stream, bytes}          this many more bytes may be sent
 *   sender   -> receiver  stream.end    {stream, bytes}          complete, with this many bytes
 *   receiver -> sender    stream.end    {stream, bytes}          all of them are committed
 *   either   -> other     stream.end    {stream, bytes, error}   aborted, with the reason
 *
 * A stream is opened by a call that contains its number, which the client chooses. Nothing is sent
 * before the first credit, so a slow side buffers at most what it has granted. Credit goes out in
 * steps of at least half the window: a receiver that passed on every few bytes it has taken would
 * get messages of just as few (RFC 1122 section 4.2.3.3 has the same rule). Whatever makes
 * delivery doubtful (a gap, a lost session, wrong counts, bytes beyond the credit) ends it with an
 * error at both ends: a stream is complete or known not to be. No bytes are stored here.
 *
 * [portable]
 */
import { fromBase64url, toBase64url } from "../encoding/base64url.ts";
import { encodeJson, isObject, own } from "../encoding/json.ts";

export const STREAM_DATA = "stream.data";
export const STREAM_CREDIT = "stream.credit";
export const STREAM_END = "stream.end";

/** `params` of the three notifications. */
export interface StreamParams {
  readonly stream: number;
  readonly bytes?: number;
  readonly data?: string;
  readonly error?: string;
}

export interface OutgoingEvents {
  /** There is credit again. */
  writable(): void;
  /** Once: null if the receiver has committed every byte. */
  ended(error: string | null): void;
}

export interface IncomingEvents {
  /** The next bytes; the receiver may keep them. */
  data(bytes: Uint8Array): void;
  /** Called once: null if every byte has arrived; then `confirm` is due. */
  ended(error: string | null): void;
}

const LAST_STREAM = 2147483647;
/** Of a reason as JSON: with its notification it fits into the shortest plaintext, of 384 bytes. */
const MAX_REASON_JSON = 240;

/** Whether a value can be a stream's number. */
const isStreamNumber = (value: unknown): value is number =>
  typeof value === "number" && value >= 1 && value <= LAST_STREAM && Math.floor(value) === value;

const isCount = (value: unknown): value is number =>
  typeof value === "number" &&
  value >= 0 &&
  value <= 9007199254740991 &&
  Math.floor(value) === value;

/** Without one, an end would say that the stream is complete. */
const toldReason = (given: unknown): string => {
  let text = typeof given === "string" && given !== "" ? given : "no reason was given";
  text = text.substring(0, MAX_REASON_JSON);
  while ((encodeJson(text) as string).length > MAX_REASON_JSON)
    text = text.substring(0, text.length - 8);
  return text;
};

/** RFC 4648 section 4, padded. */
export const toBase64 = (bytes: Uint8Array): string => {
  const text = toBase64url(bytes).split("-").join("+").split("_").join("/");
  const rest = text.length & 3;
  return rest === 0 ? text : text + "==".substring(rest - 2);
};

/** The bytes, or null if the text is not canonical padded base64. */
export const fromBase64 = (text: string): Uint8Array | null => {
  if ((text.length & 3) !== 0 || text.indexOf("-") >= 0 || text.indexOf("_") >= 0) return null;
  let end = text.length;
  while (end > 0 && text.length - end < 2 && text.charAt(end - 1) === "=") end--;
  return fromBase64url(text.substring(0, end).split("+").join("-").split("/").join("_"));
};

interface StreamTableOptions {
  /** The most bytes that one notification may carry. */
  readonly maxChunk: number;
  /** Seals and sends; false if the session cannot do so. Never throws. */
  notify(method: string, params: StreamParams): boolean;
  /** The last stream has ended. */
  drained?(): void;
}

/** The sending half of a stream. */
export class OutgoingStream {
  declare readonly id: number;
  /** Bytes that may be sent now. */
  credit = 0;
  /** Bytes sent so far. */
  sent = 0;
  over = false;
  declare readonly events: OutgoingEvents;
  declare private readonly table: StreamTable;
  private ending = false;

  constructor(table: StreamTable, id: number, events: OutgoingEvents) {
    this.table = table;
    this.id = id;
    this.events = events;
  }

  /**
   * Sends as much from the front of `bytes` as there is credit for; returns the number of bytes
   * sent.
   */
  write(bytes: Uint8Array): number {
    let at = 0;
    while (!this.over && !this.ending && at < bytes.length && this.credit > 0) {
      const size = Math.min(bytes.length - at, this.credit, this.table.maxChunk);
      const data = toBase64(bytes.subarray(at, at + size));
      this.credit -= size;
      this.sent += size;
      at += size;
      if (!this.table.notify(STREAM_DATA, { stream: this.id, data: data })) {
        this.conclude("the session does not carry it any more");
      }
    }
    return at;
  }

  /** Ends the stream. `ended` follows when the receiver has committed it. */
  end(): void {
    if (this.over || this.ending) return;
    this.ending = true;
    if (!this.table.notify(STREAM_END, { stream: this.id, bytes: this.sent })) {
      this.conclude("the session does not carry it any more");
    }
  }

  /** Gives up; the receiver is told the reason. */
  abort(error: string): void {
    if (this.over) return;
    const told = toldReason(error);
    this.table.notify(STREAM_END, { stream: this.id, bytes: this.sent, error: told });
    this.conclude(told);
  }

  receive(method: string, params: object): void {
    const bytes = own(params, "bytes");
    if (method === STREAM_CREDIT && isCount(bytes)) {
      this.credit += bytes;
      if (this.credit > 0 && !this.ending) this.events.writable();
    } else if (method === STREAM_END) {
      const error = errorOf(params);
      if (error !== null) this.conclude(error);
      else if (this.ending && bytes === this.sent) this.conclude(null);
      else this.abort("the receiver counted other bytes than were sent");
    } else {
      this.abort("the receiver sent what a receiver does not send");
    }
  }

  conclude(error: string | null): void {
    if (this.over) return;
    this.over = true;
    this.table.drop(this.id);
    this.events.ended(error);
    this.table.settle();
  }
}

/** The receiving half of a stream. */
export class IncomingStream {
  declare readonly id: number;
  /** Bytes received so far. */
  received = 0;
  /** Bytes that may still be received. */
  credit = 0;
  over = false;
  /** Granted, but not yet said to the sender. */
  private owed = 0;
  /** The most credit that the sender has had at a time. */
  private window = 0;
  declare readonly events: IncomingEvents;
  declare private readonly table: StreamTable;
  private complete = false;

  constructor(table: StreamTable, id: number, events: IncomingEvents) {
    this.table = table;
    this.id = id;
    this.events = events;
  }

  /**
   * Grants this many more bytes: first the window, then whatever was taken out of it, in parts of
   * any size, until the stream ends. The sender is told when they amount to half the window.
   */
  grant(bytes: number): void {
    if (this.over || this.complete || bytes <= 0) return;
    this.owed += bytes;
    // Before the first byte there is nothing to wait for.
    if (this.received > 0 && this.owed * 2 < this.window) return;
    const step = this.owed;
    this.owed = 0;
    this.credit += step;
    this.window = Math.max(this.window, this.credit);
    if (!this.table.notify(STREAM_CREDIT, { stream: this.id, bytes: step })) {
      this.conclude("the session does not carry it any more");
    }
  }

  /** Tells the sender that every byte is committed. Only after `ended(null)`. */
  confirm(): void {
    if (this.over || !this.complete) return;
    // Over before it is said: whether or not that can be sent now, it is complete.
    this.over = true;
    this.table.drop(this.id);
    this.table.notify(STREAM_END, { stream: this.id, bytes: this.received });
    this.table.settle();
  }

  /** Gives up; the sender is told the reason. */
  abort(error: string): void {
    if (this.over) return;
    const told = toldReason(error);
    this.table.notify(STREAM_END, { stream: this.id, bytes: this.received, error: told });
    this.conclude(told);
  }

  receive(method: string, params: object): void {
    if (method === STREAM_DATA && !this.complete) {
      this.take(own(params, "data"));
    } else if (method === STREAM_END) {
      const error = errorOf(params);
      if (error !== null) this.conclude(error);
      else if (!this.complete && own(params, "bytes") === this.received) this.finish();
      else this.abort("the sender counted other bytes than came");
    } else {
      this.abort("the sender sent what a sender does not send");
    }
  }

  conclude(error: string): void {
    if (this.over) return;
    this.over = true;
    this.table.drop(this.id);
    // Complete streams have been confirmed; a lost confirmation is reported at the sender.
    if (!this.complete) this.events.ended(error);
    this.table.settle();
  }

  private finish(): void {
    this.complete = true;
    this.events.ended(null);
  }

  private take(data: unknown): void {
    const bytes = typeof data === "string" ? fromBase64(data) : null;
    if (bytes === null) this.abort("the sender sent no base64");
    else if (bytes.length > this.credit) this.abort("the sender went over its credit");
    else {
      this.credit -= bytes.length;
      this.received += bytes.length;
      // Empty ones cost no credit: whoever kept them could be sent any number.
      if (bytes.length > 0) this.events.data(bytes);
    }
  }
}

const errorOf = (params: object): string | null => {
  const error = own(params, "error");
  if (error === undefined || error === null) return null;
  return typeof error === "string" && error !== "" ? error : "the other side ended it";
};

/** The streams of one session at one end. */
export class StreamTable {
  declare readonly maxChunk: number;
  declare private readonly options: StreamTableOptions;
  declare private streams: (OutgoingStream | IncomingStream)[];

  constructor(options: StreamTableOptions) {
    this.streams = [];
    this.options = options;
    this.maxChunk = options.maxChunk;
  }

  /** A stream to send. Throws an Error if the number is invalid or in use. */
  outgoing(id: unknown, events: OutgoingEvents): OutgoingStream {
    const stream = new OutgoingStream(this, this.vacant(id), events);
    this.streams.push(stream);
    return stream;
  }

  /** A stream to receive. Throws an Error if the number is invalid or in use. */
  incoming(id: unknown, events: IncomingEvents): IncomingStream {
    const stream = new IncomingStream(this, this.vacant(id), events);
    this.streams.push(stream);
    return stream;
  }

  /**
   * Handles one notification with a method that begins with `stream.`. Those for ended streams are
   * ignored.
   */
  receive(method: string, params: unknown): void {
    if (!isObject(params)) return;
    const id = own(params, "stream");
    for (const stream of this.streams) {
      if (stream.id === id) {
        stream.receive(method, params);
        return;
      }
    }
  }

  /**
   * Ends every stream because packets are missing or the session is over. Notifies the other side
   * if possible.
   */
  fail(error: string): void {
    const failed = this.streams;
    this.streams = [];
    for (const stream of failed) stream.abort(error);
  }

  /** The number of streams that have not ended. */
  count(): number {
    return this.streams.length;
  }

  /** Whether the stream of this number has not ended. */
  has(id: number): boolean {
    for (const stream of this.streams) if (stream.id === id) return true;
    return false;
  }

  notify(method: string, params: StreamParams): boolean {
    return this.options.notify(method, params);
  }

  drop(id: number): void {
    this.streams = this.streams.filter((stream) => stream.id !== id);
  }

  /** After an end, whose callback may have opened the next stream. */
  settle(): void {
    if (this.streams.length === 0 && this.options.drained !== undefined) this.options.drained();
  }

  private vacant(id: unknown): number {
    if (!isStreamNumber(id)) throw new Error("a stream's number is a whole one from 1");
    if (this.has(id)) throw new Error(`stream ${id} is in use`);
    return id;
  }
}
