/**
 * Counts requests per client session token, across reconnects (section 3, "what is a request"). The
 * store's count is a few seconds old; while a session has a connection, and for a while after, the
 * count here is authoritative.
 */
import { KEEP_SESSION_MS, SAVE_REQUESTS_MS } from "./limits.ts";
import {
  type Block,
  type Counted,
  type RequestCountPort,
  Reservations,
} from "./request-reservations.ts";

export interface SessionUse {
  readonly hash: string;
  readonly expiresAtMs: number;
  used: number;
  /** Of these, how many were counted here and have not been saved yet. */
  unsaved: number;
  connections: number;
  /** Since when it has no connection; meaningless while it has one. */
  idleSince: number;
  /** What is reserved for this node of a cluster; null if only one hub counts. */
  readonly block: Block | null;
}

export class RequestCounts {
  readonly #sessions = new Map<string, SessionUse>();
  /** Sessions without a connection, the one idle longest first. */
  readonly #idle = new Set<SessionUse>();
  readonly #unsaved = new Set<SessionUse>();
  readonly #maxRequests: number;
  readonly #port: RequestCountPort;
  readonly #reservations: Reservations;
  #saveAt = 0;

  constructor(maxRequests: number, port: RequestCountPort) {
    this.#maxRequests = maxRequests;
    this.#port = port;
    this.#reservations = new Reservations(port);
  }

  /** Requests used, as far as known: the store's count, or the one here if that is higher. */
  usedOf(hash: string, stored: number): number {
    return Math.max(stored, this.#sessions.get(hash)?.used ?? 0);
  }

  /** A connection authenticated with this session. */
  join(hash: string, stored: number, expiresAtMs: number): SessionUse {
    let session = this.#sessions.get(hash);
    if (session === undefined) {
      const block = this.#port.reserveRequests === undefined ? null : this.#reservations.open(hash);
      session = {
        hash,
        expiresAtMs,
        used: stored,
        unsaved: 0,
        connections: 0,
        idleSince: 0,
        block,
      };
      this.#sessions.set(hash, session);
    }
    session.used = Math.max(session.used, stored);
    session.connections += 1;
    this.#idle.delete(session);
    return session;
  }

  leave(session: SessionUse, now: number): void {
    session.connections -= 1;
    if (session.connections === 0) {
      session.idleSince = now;
      this.#idle.add(session);
      this.#saveOne(session);
      if (session.block !== null) this.#reservations.giveBack(session.block);
    }
  }

  /** Counts one request, if the session has one left. */
  count(session: SessionUse, now: number): Counted {
    if (session.block !== null) return this.#reservations.count(session.block, now);
    if (session.used >= this.#maxRequests) {
      return "used up";
    }
    session.used += 1;
    session.unsaved += 1;
    this.#unsaved.add(session);
    // REST knows only what is saved, and is to refuse it from now on.
    if (session.used >= this.#maxRequests) this.#saveOne(session);
    return "counted";
  }

  /** The store's answer to `reserveRequests`; true: those that wait for it can continue. */
  granted(hash: string, requests: number | null, now: number): boolean {
    const block = this.#sessions.get(hash)?.block ?? null;
    if (block !== null) return this.#reservations.granted(block, requests, now);
    if (requests !== null) this.#port.saveRequestsUsed(hash, 0, -requests); // nobody is here now
    return false;
  }

  isUsedUp(used: number): boolean {
    return used >= this.#maxRequests;
  }

  /**
   * Saves changed counts every few seconds, and drops sessions that have long had no connection.
   */
  tick(now: number): void {
    this.#reservations.tick(now);
    if (now >= this.#saveAt) {
      this.#saveAt = now + SAVE_REQUESTS_MS;
      for (const session of this.#unsaved) {
        this.#saveOne(session);
      }
    }
    for (const session of this.#idle) {
      if (now - session.idleSince < KEEP_SESSION_MS) {
        return;
      }
      this.#idle.delete(session);
      this.#sessions.delete(session.hash);
    }
  }

  get size(): number {
    return this.#sessions.size;
  }

  #saveOne(session: SessionUse): void {
    if (this.#unsaved.delete(session)) {
      this.#port.saveRequestsUsed(session.hash, session.used, session.unsaved);
      session.unsaved = 0;
    }
  }
}
