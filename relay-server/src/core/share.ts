/** One user's part of the relay's work; see turns.ts. */
import { TURN_COST } from "./limits.ts";

export class Share<C> {
  /** What may still be done in this turn; below 0 it is owed. */
  left = TURN_COST;
  /** Connections whose messages wait for the next turn, the one that waits longest first. */
  readonly waiting = new Set<C>();
}
