/**
 * One user's share of the relay's time and memory; see fair-scheduler.ts, hold-queue.ts and
 * outbox.ts.
 */
import { TURN_COST } from "./limits.ts";

export class UserShare<C> {
  /** Work in one turn. */
  readonly turnCost: number;
  /** What may still be done in this turn; below 0 it is owed. */
  left: number;
  /** Connections whose messages wait for the next turn, the one that waits longest first. */
  readonly waiting = new Set<C>();
  /** Of messages that wait, over all of the user's connections. */
  heldBytes = 0;
  /** Kept by the outbox: the most that may wait for the user's connections, and its last count. */
  queuedBytes = 0;
  countedBytes = 0;
  countedAt = Number.NEGATIVE_INFINITY;

  constructor(turnCost = TURN_COST) {
    this.turnCost = turnCost;
    this.left = turnCost;
  }
}
