/**
 * Byte streams with an agent, for programs: read-stream.ts is an async iterable of bytes,
 * write-stream.ts a writer with promises that apply the back-pressure. A stream either completes or
 * fails with a CallError that states how many bytes are known to have arrived; it is never
 * truncated silently. This file has the call that opens either.
 */
import type {
  IncomingEvents,
  IncomingStream,
  OutgoingEvents,
  OutgoingStream,
} from "@blindrelay/protocol/streams";
import type { ClientCore } from "./core/client-core.ts";
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

/** The streams of one session, without buffers: see protocol's session/streams.ts. */
export interface SessionStreams {
  incoming(id: number, events: IncomingEvents): IncomingStream;
  outgoing(id: number, events: OutgoingEvents): OutgoingStream;
  /**
   * The session's notifications, in their place between the data, until the returned function is
   * called.
   */
  onNotice(fn: (event: string, data: unknown) => void): () => void;
  /** Milliseconds until the relay's rate limit has room for another message; 0: now. */
  paceMs(): number;
}

/** `threw`: gets what a listener throws. */
export const streamsOf = (
  core: ClientCore,
  session: PeerSession,
  threw: (cause: unknown) => void,
): SessionStreams => ({
  incoming: (id, events) =>
    session.streams.incoming(id, {
      data: (bytes) => tell(() => events.data(bytes), threw),
      ended: (error) => tell(() => events.ended(error), threw),
    }),
  outgoing: (id, events) =>
    session.streams.outgoing(id, {
      writable: () => tell(() => events.writable(), threw),
      ended: (error) => tell(() => events.ended(error), threw),
    }),
  onNotice: (fn) => {
    const notice = (event: string, data: unknown) => tell(() => fn(event, data), threw);
    session.notices.add(notice);
    return () => session.notices.delete(notice);
  },
  paceMs: () => core.paceMs(),
});

/** Listeners are told in the middle of the core's work, of which others are a part. */
export const tell = (listener: () => void, threw: (cause: unknown) => void): void => {
  try {
    listener();
  } catch (cause) {
    threw(cause);
  }
};

export interface Opening {
  readonly core: ClientCore;
  readonly peer: Peer;
  readonly method: string;
  readonly params: object;
  readonly timeoutMs: number;
  readonly id: number;
}

export const broken = (method: string, error: string, bytes: number): CallError =>
  new CallError("OUTCOME_UNKNOWN", `the stream of ${method} broke after ${bytes} bytes: ${error}`);

/** Why a stream ends whose call is made again in another session. */
export const CALLED_AGAIN = "the agent refused its call as too late";

/** Makes the call; `sent` gets the session. Rejects with the reason why no stream opened. */
export const openStream = <Result = unknown>(
  { core, peer, method, params, timeoutMs }: Omit<Opening, "id">,
  sent: (session: PeerSession) => void,
): Promise<Result> =>
  new Promise((resolve, reject) => {
    const request = { method, params, timeoutMs, idempotent: false, sent };
    core.call(peer, request, (outcome: Outcome) => {
      if (outcome.ok) resolve(outcome.result as Result);
      else reject(outcome.error);
    });
  });
