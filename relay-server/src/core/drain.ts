/**
 * Shutdown (section 3): everybody is told `RESTARTING` and when to come back, then closed with
 * 1012. A batch per tick, so that the goodbye does not block what is still under way; the moments
 * of return are spread, so that the next relay does not meet everybody at once.
 */
import type { Connection } from "./connection.ts";
import { DRAIN_BATCH, MIN_RECONNECT_WINDOW_S, RECONNECTS_PER_SECOND } from "./limits.ts";
import { stagger } from "./stagger.ts";

export class Drain {
  readonly #left: Iterator<Connection>;
  readonly #windowS: number;
  #count = 0;

  constructor(connections: ReadonlySet<Connection>) {
    this.#left = [...connections].values();
    this.#windowS = Math.max(MIN_RECONNECT_WINDOW_S, connections.size / RECONNECTS_PER_SECOND);
  }

  /** When the next one shall come back: whole seconds, at least 1. */
  nextReconnectInS(): number {
    this.#count += 1;
    return 1 + Math.floor(stagger(this.#count) * this.#windowS);
  }

  /** Says goodbye to the next batch. */
  tick(restart: (connection: Connection, reconnectInS: number) => void): void {
    for (let i = 0; i < DRAIN_BATCH; i++) {
      const next = this.#left.next();
      if (next.done === true) {
        return;
      }
      restart(next.value, this.nextReconnectInS());
    }
  }
}
