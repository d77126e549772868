/**
 * How much a hub holds, updated as it changes: a request for figures must not have to walk over all
 * connections, which would delay messages.
 */
import type { ClientType } from "./link.ts";

/**
 * By what connections said they are; `waiting` have not authenticated, `closing` are ended and
 * their sockets not gone yet. Guests are counted by their own node.
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

  /** A connection begins to be of a kind, or changes to it. */
  become(kind: ConnectionKind, before: ConnectionKind | null): void {
    if (before !== null) this.connections[before] -= 1;
    this.connections[kind] += 1;
  }

  /** The socket of a connection that is closing is gone. */
  gone(): void {
    this.connections.closing -= 1;
  }
}
