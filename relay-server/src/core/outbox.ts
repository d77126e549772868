/**
 * The queue towards each peer, bounded in bytes before anything is written (section 3, "slow
 * receiver"). Queued is what the link has not handed to the operating system yet. A connection is
 * over its bound from the first message that did not fit until that message would fit; 30 s of that
 * end it.
 */
import { SLOW_CONSUMER_CLOSE_MS } from "@blindrelay/protocol";
import type { Connection } from "./connection.ts";
import type { Frame } from "./link.ts";

export class Outbox {
  readonly #maxBytes: number;
  readonly #over = new Set<Connection>();
  /** Connections with a queue, and perhaps some whose queue has emptied since. */
  readonly #queueing = new Set<Connection>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Sends a message, or answers false when the queue is too full for it. */
  offer(connection: Connection, frame: Frame, now: number): boolean {
    if (connection.link.queued() + frame.length <= this.#maxBytes) {
      connection.link.send(frame);
      return true;
    }
    if (connection.overSince === null) {
      connection.overSince = now;
      this.#over.add(connection);
    }
    connection.refusedBytes = frame.length;
    return false;
  }

  /** Whether at least half of the queue is free: room for messages that can also wait. */
  isRoomy(connection: Connection): boolean {
    return connection.link.queued() <= this.#maxBytes / 2;
  }

  /** Finds connections that have been over their bound for too long. */
  tick(now: number, tooSlow: (connection: Connection) => void): void {
    for (const connection of this.#over) {
      if (connection.link.queued() + connection.refusedBytes <= this.#maxBytes) {
        this.forget(connection);
      } else if (now - (connection.overSince as number) >= SLOW_CONSUMER_CLOSE_MS) {
        tooSlow(connection);
      }
    }
  }

  forget(connection: Connection): void {
    connection.overSince = null;
    this.#over.delete(connection);
  }

  /** The operating system did not take all that a connection was to send. */
  queues(connection: Connection): void {
    this.#queueing.add(connection);
  }

  /** The socket is gone. */
  drop(connection: Connection): void {
    this.#queueing.delete(connection);
  }

  /** Bytes that the operating system has not taken, over all connections. */
  queuedBytes(): number {
    let bytes = 0;
    for (const connection of this.#queueing) {
      const queued = connection.link.queued();
      if (queued === 0) this.#queueing.delete(connection);
      bytes += queued;
    }
    return bytes;
  }

  get overCount(): number {
    return this.#over.size;
  }
}
