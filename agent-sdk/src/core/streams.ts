/**
 * Byte streams of an agent. They are optional: a program that needs them creates one `Streams` for
 * its agent, and a board that does not need them never loads this file.
 *
 *   const streams = new Streams(agent);
 *   agent.handle("log.read", (params, context) => {
 *     const out = streams.outgoing(context.sid, params.stream, { writable, ended });
 *     return {};
 *   });
 *
 * What goes over the wire is in protocol's session/streams.ts. Streams belong to the session that
 * opened them and end with it.
 *
 * [portable]
 */
import { encodeJson } from "@blindrelay/protocol/crypto";
import type {
  IncomingEvents,
  IncomingStream,
  OutgoingEvents,
  OutgoingStream,
  StreamParams,
} from "@blindrelay/protocol/streams";
import { STREAM_CREDIT, STREAM_DATA, STREAM_END, StreamTable } from "@blindrelay/protocol/streams";
import type { Agent, SessionWiring } from "./agent.ts";
import { reasonOf } from "./dispatch.ts";

/** Bytes of one notification: few enough that other messages can be sent in between. */
const MAX_CHUNK = 12288;
/** A notification around its base64, with the longest stream number. */
const NOTICE_OVERHEAD = 96;
/** Between two attempts to tell an end. */
const TELL_AGAIN_MS = 250;

const noticeOf = (method: string, params: StreamParams): string =>
  `{"jsonrpc":"2.0","method":"${method}","params":${encodeJson(params)}}`;

/** The end of a stream that could not send this. */
const brokenOff = (params: StreamParams): StreamParams => ({
  stream: params.stream,
  bytes: params.bytes === undefined ? 0 : params.bytes,
  error: params.error === undefined ? "the session did not carry it" : params.error,
});

export class Streams {
  declare readonly methods: readonly string[];
  declare private readonly agent: Pick<Agent, "attach" | "log" | "after">;
  declare private readonly wiring: SessionWiring;
  /** Sids and, at the same index, their streams. */
  declare private sids: string[];
  declare private tables: StreamTable[];

  /** Throws if the agent already has Streams. */
  constructor(agent: Pick<Agent, "attach" | "log" | "after">) {
    this.agent = agent;
    this.methods = [STREAM_DATA, STREAM_CREDIT, STREAM_END];
    this.sids = [];
    this.tables = [];
    this.wiring = agent.attach(this);
  }

  /**
   * A stream to the client of session `sid`, with the number from its call. Write nothing before
   * `writable`. Throws an Error if the number is invalid or in use.
   */
  outgoing(sid: string, id: unknown, events: OutgoingEvents): OutgoingStream {
    const stream: OutgoingStream = this.tableOf(sid).outgoing(id, {
      writable: () => this.run(stream, () => events.writable()),
      ended: (error) => this.tellEnd(stream, events, error),
    });
    return stream;
  }

  /**
   * A stream from the client of session `sid`, which sends no more than it was granted. Throws as
   * `outgoing` does.
   */
  incoming(sid: string, id: unknown, events: IncomingEvents): IncomingStream {
    const stream: IncomingStream = this.tableOf(sid).incoming(id, {
      data: (bytes) => this.run(stream, () => events.data(bytes)),
      ended: (error) => this.tellEnd(stream, events, error),
    });
    return stream;
  }

  /** Ends every stream of every session. */
  fail(reason: string): void {
    this.lost(null, reason);
  }

  /** For the core. */
  receive(method: string, params: unknown, sid: string): void {
    const index = this.sids.indexOf(sid);
    if (index >= 0) (this.tables[index] as StreamTable).receive(method, params);
  }

  /** For the core: see SessionPart. */
  lost(sid: string | null, reason: string): void {
    // The callback may open the next stream.
    const sids = this.sids;
    const tables = this.tables;
    for (let i = 0; i < sids.length; i++) {
      if (sid === null || sids[i] === sid) (tables[i] as StreamTable).fail(reason);
    }
  }

  /** A program that failed has not taken those bytes, or will write no more. */
  private run(stream: OutgoingStream | IncomingStream, fn: () => void): void {
    try {
      fn();
    } catch (thrown) {
      stream.abort(reasonOf(thrown));
      throw thrown;
    }
  }

  /** A stream may end in the middle of the core's work, and others with it. */
  private tellEnd(
    stream: OutgoingStream | IncomingStream,
    events: OutgoingEvents | IncomingEvents,
    error: string | null,
  ): void {
    try {
      this.run(stream, () => events.ended(error));
    } catch (thrown) {
      const reason = { reason: reasonOf(thrown) };
      this.agent.log("error", "a listener to the end of a stream failed", reason, thrown);
    }
  }

  /**
   * An end that could not be sent is known at this side only: the other side is told as soon as the
   * link carries it. One that knows already ignores it.
   */
  private tellLater(sid: string, end: StreamParams): void {
    if (this.wiring.heardAt(sid) === null) return;
    this.agent.after(TELL_AGAIN_MS, () => {
      if (!this.wiring.send(sid, noticeOf(STREAM_END, end))) this.tellLater(sid, end);
    });
  }

  private tableOf(sid: string): StreamTable {
    this.sweep();
    const index = this.sids.indexOf(sid);
    if (index >= 0) return this.tables[index] as StreamTable;
    const room = Math.floor((this.wiring.maxPlaintext - NOTICE_OVERHEAD) / 4) * 3;
    const table: StreamTable = new StreamTable({
      maxChunk: Math.max(1, Math.min(MAX_CHUNK, room)),
      notify: (method, params) => {
        const isSent = this.wiring.send(sid, noticeOf(method, params));
        // A stream that is confirmed is over, and complete. All others end because of this.
        if (!isSent) this.tellLater(sid, table.has(params.stream) ? brokenOff(params) : params);
        return isSent;
      },
    });
    this.sids.push(sid);
    this.tables.push(table);
    return table;
  }

  /** Forgets sessions without open streams. */
  private sweep(): void {
    const sids: string[] = [];
    const tables: StreamTable[] = [];
    for (let i = 0; i < this.sids.length; i++) {
      const table = this.tables[i] as StreamTable;
      if (table.count() > 0) {
        sids.push(this.sids[i] as string);
        tables.push(table);
      }
    }
    this.sids = sids;
    this.tables = tables;
  }
}
