/**
 * Requests counted per client session token, across reconnects (section 3, "what is a request").
 * The store knows a count that is a few seconds old; while a session has a connection, and for a
 * while after, the count here is the true one.
 */

import { KEEP_SESSION_MS, SAVE_REQUESTS_MS } from "./limits.ts";

/** Where a count goes; the hub calls it seldom, not per request. */
export interface RequestCountPort {
  /** `used`: in all, as far as this hub knows; `added`: since it last said so. */
  saveRequestsUsed(sessionHash: string, used: number, added: number): void;
}

export interface SessionUse {
  readonly hash: string;
  readonly expiresAtMs: number;
  used: number;
  /** Of these, how many were counted here and not saved yet. */
  unsaved: number;
  connections: number;
  /** Since when it has no connection; meaningless while it has one. */
  idleSince: number;
}

export class Sessions {
  readonly #sessions = new Map<string, SessionUse>();
  /** Sessions without a connection, the one idle longest first. */
  readonly #idle = new Set<SessionUse>();
  readonly #unsaved = new Set<SessionUse>();
  readonly #maxRequests: number;
  readonly #port: RequestCountPort;
  #saveAt = 0;

  constructor(maxRequests: number, port: RequestCountPort) {
    this.#maxRequests = maxRequests;
    this.#port = port;
  }

  /** Requests used as far as anybody knows: the store's count, or ours when that is ahead. */
  usedOf(hash: string, stored: number): number {
    return Math.max(stored, this.#sessions.get(hash)?.used ?? 0);
  }

  /** A connection authenticated with this session. */
  join(hash: string, stored: number, expiresAtMs: number): SessionUse {
    let session = this.#sessions.get(hash);
    if (session === undefined) {
      session = { hash, expiresAtMs, used: stored, unsaved: 0, connections: 0, idleSince: 0 };
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
    }
  }

  /** Counts one request; false when the session has none left. */
  count(session: SessionUse): boolean {
    if (session.used >= this.#maxRequests) {
      return false;
    }
    session.used += 1;
    session.unsaved += 1;
    this.#unsaved.add(session);
    return true;
  }

  isUsedUp(used: number): boolean {
    return used >= this.#maxRequests;
  }

  /** Saves what changed, every few seconds, and forgets sessions long without a connection. */
  tick(now: number): void {
    if (now >= this.#saveAt) {
      this.#saveAt = now + SAVE_REQUESTS_MS;
      for (const session of this.#unsaved) {
        this.#saveOne(session);
      }
    }
    for (const session of this.#idle) {
      if (session.idleSince + KEEP_SESSION_MS > now) {
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
