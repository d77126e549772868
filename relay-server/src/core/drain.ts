/**
 * Shutdown (section 3): every peer gets `RESTARTING` and a time to reconnect. Peers are notified in
 * batches, one per tick, so that other messages are not blocked; the times are spread, so that the
 * peers do not all arrive at once.
 *
 * A single relay then closes with 1012. A node of a cluster keeps each link until its peer has
 * connected elsewhere and leaves, or is overdue: make before break. An overdue agent's link ends
 * once the agent has answered what was forwarded to it. A node that is not shutting down can do the
 * same with a share of its links.
 */
import type { Connection } from "./connection.ts";
import { Leaving } from "./leaving.ts";
import {
  ANSWERS_MS,
  DRAIN_BATCH,
  DRAIN_TICKS,
  HELD_LINK_MS,
  MAX_MOVE_WINDOW_S,
  MIN_RECONNECT_WINDOW_S,
  MOVES_PER_SECOND,
  RECONNECTS_PER_SECOND,
} from "./limits.ts";
import { stagger } from "./stagger.ts";

export interface DrainActions {
  /** Notifies a peer; its link stays open. */
  tell(connection: Connection, reconnectInS: number): void;
  /** Notifies a peer and closes its link. */
  restart(connection: Connection, reconnectInS: number): void;
  /** Closes the link of a peer that was notified. */
  close(connection: Connection): void;
}

export class Drain {
  readonly #left: Iterator<Connection>;
  readonly #windowS: number;
  readonly #batch: number;
  readonly #holds: boolean;
  /** Links that stay open, with the time at which their peer is overdue. */
  readonly #held = new Map<Connection, number>();
  #count = 0;
  #toldAll = false;

  /** `holds`: there are other nodes that the peers can move to. */
  constructor(connections: ReadonlySet<Connection>, holds: boolean) {
    this.#left = [...connections].values();
    const windowS = holds
      ? Math.min(MAX_MOVE_WINDOW_S, connections.size / MOVES_PER_SECOND)
      : connections.size / RECONNECTS_PER_SECOND;
    this.#windowS = Math.max(MIN_RECONNECT_WINDOW_S, windowS);
    this.#batch = holds
      ? Math.max(DRAIN_BATCH, Math.ceil(connections.size / DRAIN_TICKS))
      : DRAIN_BATCH;
    this.#holds = holds;
  }

  /**
   * When a peer that has only just connected should reconnect: at once if another node is ready. If
   * none is, all peers that look for one arrive here again and again, so they are spread.
   */
  newcomerReconnectInS(isOtherReady: boolean): number {
    return isOtherReady ? 1 : this.#nextReconnectInS();
  }

  /** Whether every peer was notified, and every held link has ended. */
  get isOver(): boolean {
    return this.#toldAll && this.#held.size === 0;
  }

  /** Seconds, at least 1, in tenths. */
  #nextReconnectInS(): number {
    this.#count += 1;
    return (10 + Math.floor(stagger(this.#count) * this.#windowS * 10)) / 10;
  }

  /** Notifies the next batch, and closes overdue links. */
  tick(now: number, actions: DrainActions): void {
    for (const [connection, overdueAt] of this.#held) {
      if (connection.state !== "closing" && !hasFinished(connection, now - overdueAt)) continue;
      this.#held.delete(connection);
      actions.close(connection);
    }
    for (let i = 0; i < this.#batch; i++) {
      const next = this.#left.next();
      if (next.done === true) {
        this.#toldAll = true;
        return;
      }
      const connection = next.value;
      const reconnectInS = this.#nextReconnectInS();
      if (this.#holds && connection.peer !== null && connection.state === "online") {
        actions.tell(connection, reconnectInS);
        if (connection.peer.role === "agent") connection.leaving = new Leaving();
        this.#held.set(connection, now + reconnectInS * 1000 + HELD_LINK_MS);
      } else {
        actions.restart(connection, reconnectInS);
      }
    }
  }
}

/** Whether a link that is overdue for this long can be closed. */
const hasFinished = ({ leaving }: Connection, overdueMs: number): boolean => {
  if (overdueMs < 0) return false;
  if (leaving === null) return true;
  leaving.isClosed = true;
  return leaving.isDrained || overdueMs >= ANSWERS_MS;
};
