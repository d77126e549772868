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
import type { Connection } from "../connections/connection.ts";
import { Leaving } from "../connections/leaving.ts";
import {
  ANSWERS_MS,
  DRAIN_BATCH,
  DRAIN_TICKS,
  HURRIED_LINK_MS,
  MAX_HELD_LINK_MS,
  MIN_HELD_LINK_MS,
  MIN_RECONNECT_WINDOW_S,
  MOVE_WINDOW_S,
  MOVES_PER_SECOND,
  RECONNECTS_PER_SECOND,
  TICK_MS,
} from "../limits/limits.ts";
import { stagger } from "./stagger.ts";

interface DrainActions {
  /** Notifies a peer; its link stays open. */
  tell(connection: Connection, reconnectInS: number): void;
  /** Notifies a peer and closes its link. */
  restart(connection: Connection, reconnectInS: number): void;
  /** Closes the link of a peer that was notified. */
  close(connection: Connection): void;
}

/** Nobody reconnects earlier. */
const FIRST_RECONNECT_MS = 1000;

const between = (min: number, wanted: number, max: number): number =>
  Math.max(min, Math.min(wanted, max));

/** Over how many seconds so many peers are spread if they are hurried. */
const shortestWindowS = (peers: number): number =>
  between(MIN_RECONNECT_WINDOW_S, peers / MOVES_PER_SECOND, MOVE_WINDOW_S);

/** How long it then takes until the last of them has moved to another node. */
export const shortestMoveMs = (peers: number): number => {
  const tellMs = TICK_MS * Math.min(DRAIN_TICKS, Math.ceil(peers / DRAIN_BATCH));
  const windowMs = 1000 * shortestWindowS(peers);
  return tellMs + FIRST_RECONNECT_MS + windowMs + HURRIED_LINK_MS + ANSWERS_MS;
};

/** What is left beyond the shortest move goes to the window, then to the links. */
const planMove = (peers: number, leftMs: number) => {
  const shortestS = shortestWindowS(peers);
  const spareMs = Math.max(0, leftMs - shortestMoveMs(peers));
  const windowS = Math.min(MOVE_WINDOW_S, shortestS + spareMs / 1000);
  const keptMs = HURRIED_LINK_MS + spareMs - 1000 * (windowS - shortestS);
  const busyMs = (1000 * peers) / MOVES_PER_SECOND;
  return {
    windowS,
    heldMs: Math.min(between(MIN_HELD_LINK_MS, busyMs, MAX_HELD_LINK_MS), keptMs),
  };
};

export class Drain {
  readonly #left: Iterator<Connection>;
  readonly #windowS: number;
  readonly #batch: number;
  readonly #holds: boolean;
  readonly #heldMs: number;
  /** Links that stay open, with the time at which their peer is overdue. */
  readonly #held = new Map<Connection, number>();
  #count = 0;
  #toldAll = false;

  /**
   * `holds`: there are other nodes that the peers can move to. `leftMs`: until the process ends,
   * and the remaining links with it.
   */
  constructor(connections: ReadonlySet<Connection>, holds: boolean, leftMs = Infinity) {
    this.#left = [...connections].values();
    const { size } = connections;
    const move = planMove(size, leftMs);
    this.#heldMs = move.heldMs;
    this.#windowS = holds
      ? move.windowS
      : Math.max(MIN_RECONNECT_WINDOW_S, size / RECONNECTS_PER_SECOND);
    this.#batch = holds ? Math.max(DRAIN_BATCH, Math.ceil(size / DRAIN_TICKS)) : DRAIN_BATCH;
    this.#holds = holds;
  }

  /**
   * When a peer that has only just connected should reconnect: at once if another node is ready. If
   * none is, all peers that look for one arrive here again and again, so they are spread.
   */
  newcomerReconnectInS(isOtherReady: boolean): number {
    return isOtherReady ? FIRST_RECONNECT_MS / 1000 : this.#nextReconnectInS();
  }

  /** Whether every peer was notified, and every held link has ended. */
  get isOver(): boolean {
    return this.#toldAll && this.#held.size === 0;
  }

  /** In tenths. */
  #nextReconnectInS(): number {
    this.#count += 1;
    const tenths = Math.floor(stagger(this.#count) * this.#windowS * 10);
    return (FIRST_RECONNECT_MS / 100 + tenths) / 10;
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
        this.#held.set(connection, now + reconnectInS * 1000 + this.#heldMs);
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
