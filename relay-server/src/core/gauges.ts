/**
 * The hub's current figures, updated as they change: a request for them must not walk over all
 * connections, which would delay messages.
 */
import type { ClientType } from "./link.ts";

/**
 * Connections by type; `waiting` have not authenticated, `closing` have ended but their sockets are
 * still open. Guests are counted by their own node.
 */
export type ConnectionKind = ClientType | "waiting" | "closing";

export class Gauges {
  readonly connections: Record<ConnectionKind, number> = {
    client: 0,
    agent: 0,
    firmware: 0,
    waiting: 0,
    closing: 0,
  };
  /** Over all users. */
  bindings = 0;

  /** A connection's kind is set or changes. */
  become(kind: ConnectionKind, before: ConnectionKind | null): void {
    if (before !== null) this.connections[before] -= 1;
    this.connections[kind] += 1;
  }

  /** The socket of a closing connection is gone. */
  gone(): void {
    this.connections.closing -= 1;
  }
}
