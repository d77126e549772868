/**
 * One call: from the queue, through the session that carries it, to its single outcome. It is
 * settled exactly once; the deadline is its own, whatever sessions and links come and go.
 */
import type { CallError } from "../errors.ts";
import type { Outcome } from "./jsonrpc.ts";
import type { PeerSession } from "./session.ts";

export interface Call {
  readonly method: string;
  /** The request's text behind its id. */
  readonly tail: string;
  /** May be executed twice; only such calls are made again by the SDK. */
  readonly idempotent: boolean;
  /** Told of the session that it was sent in, at once. */
  readonly sent: ((session: PeerSession) => void) | null;
  /** Where it is in flight; null while it waits. */
  session: PeerSession | null;
  settled: boolean;
  /** The caller left, but the packet is out: its answer or deadline is still awaited. */
  orphaned: boolean;
  /** The deadline. */
  timer: unknown;
  done: (outcome: Outcome) => void;
}

/** Whether making it again cannot execute it twice. */
export const isSafe = (call: Call): boolean => call.idempotent || call.session === null;

/** An outcome that is an error. */
export const failed = (error: CallError): Outcome => ({ ok: false, error });
