/**
 * One user's share of the relay's time and memory; see fair-scheduler.ts, hold-queue.ts and
 * outbox.ts.
 */
import { TURN_COST } from "./limits.ts";

export class UserShare<C> {
  /** Work allowed in one turn. */
  readonly turnCost: number;
  /** What is left in this turn; negative values are carried over as a debt. */
  left: number;
  /**
   * Connections with messages that wait for the next turn: first what is left of links that are
   * gone, then the longest wait first.
   */
  waiting = new Set<C>();
  /** Bytes of waiting messages, over all of the user's connections. */
  heldBytes = 0;
  /**
   * Kept by the outbox: an upper bound of what is queued for the user's connections, and its last
   * count.
   */
  queuedBytes = 0;
  countedBytes = 0;
  countedAt = Number.NEGATIVE_INFINITY;
  /** Of all connections; kept by `Bindings` and `RequestIds`. */
  bindings = 0;
  requestIds = 0;

  constructor(turnCost = TURN_COST) {
    this.turnCost = turnCost;
    this.left = turnCost;
  }
}
