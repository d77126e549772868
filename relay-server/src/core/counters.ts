/**
 * What the hub counts, for `/metrics` and `/admin/stats`. Every message to be forwarded is counted
 * once as received, and then once as forwarded or dropped (by reason). A message for another node
 * of a cluster counts as forwarded to the bus here, and once more as forwarded or dropped there.
 */
import type { ErrorCode } from "@blindrelay/protocol";

/** An error code, or that the sender left while the hub looked something up. */
type DropReason = ErrorCode | "SENDER_LEFT";

export class Counters {
  /** Relay envelopes and bare packets that arrived. */
  received = 0;
  forwardedToAgents = 0;
  forwardedToClients = 0;
  /** Handed to the bus, for agents and clients of other nodes. */
  forwardedToNodes = 0;
  /** Messages from other nodes' clients to agents of this one. */
  receivedFromNodes = 0;
  forwardedBytes = 0;
  readonly dropped = new Map<DropReason, number>();
  /** `error` messages by code, whatever they were about. */
  readonly errors = new Map<ErrorCode, number>();
  /** Every `auth_response` with status failed, whether or not it counts against an address. */
  authFailures = 0;
  authSuccesses = 0;
  takeovers = 0;
  /** The relay's own messages (errors, presence, pongs) that found a queue full. */
  controlMessagesDropped = 0;
  closedForMissedPings = 0;
  closedForSlowness = 0;
  /** Too many fragments or control frames, or a fragmented message that did not end. */
  closedForFraming = 0;
  /** Kept sending after too many RATE_LIMITED. */
  closedForRate = 0;
  connectionsOpened = 0;

  drop(reason: DropReason): void {
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + 1);
  }

  error(code: ErrorCode): void {
    this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
  }
}
