/**
 * The queue to each peer, bounded in bytes before anything is written (section 3, "slow receiver").
 * It counts what the link has not handed to the operating system yet. A connection is over its
 * bound from the first message that did not fit until that message would fit, and ends after 30 s
 * of that. All connections of one user also share a bound, because there may be a thousand; those
 * with access keys have one of their own.
 */
import { SLOW_CONSUMER_CLOSE_MS } from "@blindrelay/protocol";
import {
  QUEUED_BYTES_PER_USER,
  RECOUNT_BYTES,
  SHORT_QUEUE_BYTES,
  TICK_MS,
} from "../limits/limits.ts";
import type { UserShare } from "../limits/user-share.ts";
import type { Frame } from "../link.ts";
import { type Connection, shareOf } from "./connection.ts";

export class Outbox {
  readonly #maxBytes: number;
  readonly #over = new Set<Connection>();
  /** Connections with a queue, and perhaps some whose queue has emptied since. */
  readonly #queueing = new Set<Connection>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Sends a message, or returns false if the queue is too full for it. */
  offer(connection: Connection, frame: Frame, now: number): boolean {
    if (this.#fits(connection, frame.length, now)) {
      connection.link.send(frame);
      if (connection.peer !== null) shareOf(connection.peer).queuedBytes += frame.length;
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
      if (this.#fits(connection, connection.refusedBytes, now)) {
        this.forget(connection);
      } else if (now - (connection.overSince as number) >= SLOW_CONSUMER_CLOSE_MS) {
        tooSlow(connection);
      }
    }
  }

  /** Whether a message of this many bytes may join a connection's queue. */
  #fits(connection: Connection, bytes: number, now: number): boolean {
    const queued = connection.link.queued();
    if (queued + bytes > this.#maxBytes) return false;
    const { peer } = connection;
    const isShort = queued === 0 || queued + bytes <= SHORT_QUEUE_BYTES;
    return peer === null || this.#userHasRoom(shareOf(peer), isShort, now);
  }

  /** A connection with a short queue may be reading, if slowly, so it gets more. */
  #userHasRoom(share: UserShare<Connection>, isShort: boolean, now: number): boolean {
    const most = isShort ? 2 * QUEUED_BYTES_PER_USER : QUEUED_BYTES_PER_USER;
    if (share.queuedBytes <= most) return true;
    const sentSince = share.queuedBytes - share.countedBytes;
    if (sentSince < RECOUNT_BYTES && now - share.countedAt < TICK_MS) return false;
    share.queuedBytes = 0;
    for (const { peer, link } of this.#queueing) {
      if (peer !== null && shareOf(peer) === share) share.queuedBytes += link.queued();
    }
    share.countedBytes = share.queuedBytes;
    share.countedAt = now;
    return share.queuedBytes <= most;
  }

  forget(connection: Connection): void {
    connection.overSince = null;
    this.#over.delete(connection);
  }

  /** The operating system did not accept everything that a connection sent. */
  queues(connection: Connection): void {
    this.#queueing.add(connection);
  }

  /** The socket is gone. */
  drop(connection: Connection): void {
    this.#queueing.delete(connection);
  }

  /** Bytes that the operating system has not accepted, over all connections. */
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
