/**
 * The client's end of a session's byte streams (section 2; the rules are in protocol's
 * session/streams.ts). A call opens a stream: it contains the number, and the stream exists from
 * the moment the call is sent, because the agent's first credit may overtake its answer.
 */
import { encodeJson, isObject } from "@blindrelay/protocol/crypto";
import {
  type IncomingEvents,
  type IncomingStream,
  type OutgoingEvents,
  type OutgoingStream,
  StreamTable,
} from "@blindrelay/protocol/streams";
import { MAX_STREAM_CHUNK } from "./defaults.ts";

interface StreamHost {
  /** Seals and sends a notification's text; false if the session cannot. */
  notify(text: string): boolean;
  /** The last stream has ended. */
  drained(): void;
}

const PREFIX = "stream.";

/** Whether a notification is about a stream, rather than a program's event. */
export const isStreamNotice = (method: string): boolean => method.startsWith(PREFIX);

export class SessionStreams {
  private readonly host: StreamHost;
  private readonly table: StreamTable;

  constructor(host: StreamHost) {
    this.host = host;
    this.table = new StreamTable({
      maxChunk: MAX_STREAM_CHUNK,
      notify: (method, params) =>
        host.notify(`{"jsonrpc":"2.0","method":"${method}","params":${encodeJson(params)}}`),
    });
  }

  /** The number of streams that have not ended. */
  get count(): number {
    return this.table.count();
  }

  outgoing(id: number, events: OutgoingEvents): OutgoingStream {
    return this.table.outgoing(id, {
      writable: () => events.writable(),
      ended: (error) => {
        events.ended(error);
        this.settle();
      },
    });
  }

  incoming(id: number, events: IncomingEvents): IncomingStream {
    return this.table.incoming(id, {
      data: (bytes) => events.data(bytes),
      ended: (error) => {
        events.ended(error);
        this.settle();
      },
    });
  }

  receive(method: string, params: unknown): void {
    if (isObject(params)) this.table.receive(method, params);
  }

  /** Ends all of them: packets are missing, or the session is over. */
  fail(reason: string): void {
    if (this.count > 0) this.table.fail(reason);
  }

  /** Call it when a stream that may be the last one has ended. */
  settle(): void {
    if (this.count === 0) this.host.drained();
  }
}
