/**
 * Shutdown (section 3): every peer gets `RESTARTING` and a time to come back. Peers are notified in
 * batches, one per tick, so that this does not block other messages; their times to come back are
 * spread, so that they do not all arrive at once.
 *
 * A relay that is alone then closes with 1012. One of several goes on with each link until its peer
 * has connected elsewhere and leaves it, or is overdue: make before break. The link of an agent
 * that is overdue ends once it has answered what was forwarded to it.
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

export interface Goodbyes {
  /** Tells a peer; its link goes on. */
  tell(connection: Connection, reconnectInS: number): void;
  /** Tells a peer and closes its link. */
  restart(connection: Connection, reconnectInS: number): void;
  /** Closes the link of a peer that was told. */
  close(connection: Connection): void;
}

export class Drain {
  readonly #left: Iterator<Connection>;
  readonly #windowS: number;
  readonly #batch: number;
  readonly #holds: boolean;
  /** Links that go on, by when their peer is overdue. */
  readonly #held = new Map<Connection, number>();
  #count = 0;

  /** `holds`: there are other nodes, to which the peers can go. */
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

  /** When a peer shall come back that has connected only now: another node has room at once. */
  newcomerReconnectInS(): number {
    return this.#holds ? 1 : this.#nextReconnectInS();
  }

  /** Seconds, at least 1, in tenths. */
  #nextReconnectInS(): number {
    this.#count += 1;
    return (10 + Math.floor(stagger(this.#count) * this.#windowS * 10)) / 10;
  }

  /** Says goodbye to the next batch, and closes what is overdue. */
  tick(now: number, goodbyes: Goodbyes): void {
    for (const [connection, overdueAt] of this.#held) {
      if (connection.state !== "closing" && !hasFinished(connection, now - overdueAt)) continue;
      this.#held.delete(connection);
      goodbyes.close(connection);
    }
    for (let i = 0; i < this.#batch; i++) {
      const next = this.#left.next();
      if (next.done === true) {
        return;
      }
      const connection = next.value;
      const reconnectInS = this.#nextReconnectInS();
      if (this.#holds && connection.peer !== null && connection.state === "online") {
        goodbyes.tell(connection, reconnectInS);
        if (connection.peer.role === "agent") connection.leaving = new Leaving();
        this.#held.set(connection, now + reconnectInS * 1000 + HELD_LINK_MS);
      } else {
        goodbyes.restart(connection, reconnectInS);
      }
    }
  }
}

/** Whether a link that is overdue for so long can be closed. */
const hasFinished = ({ leaving }: Connection, overdueMs: number): boolean => {
  if (overdueMs < 0) return false;
  if (leaving === null) return true;
  leaving.isClosed = true;
  return leaving.isQuiet || overdueMs >= ANSWERS_MS;
};
