/**
 * Requests of one client session token when several nodes count them: each node reserves a block in
 * the store ahead of its use and returns what it did not use, so that all nodes together never use
 * more than the session has, but can use all of it. A node that is killed forfeits its block.
 */

/** Where a count is saved; the hub calls it occasionally, not per request. */
export interface RequestCountPort {
  /** `used`: in total, as far as this hub knows; `added`: since the last save. */
  saveRequestsUsed(sessionHash: string, used: number, added: number): void;
  /**
   * In a cluster: reserves some; `hub.reserved` follows. `saveRequestsUsed` then returns unused
   * ones with a negative `added`. Absent: only this hub counts.
   */
  reserveRequests?(sessionHash: string): void;
}

/** After this long without a request, the rest of a block is returned for the other nodes. */
export const GIVE_BACK_MS = 1000;
/** Long enough for other nodes to return what they do not use; they write that once a second. */
export const ASK_AGAIN_MS = 2500;
/** How long the store is not asked again after it could not answer. */
const AWAY_MS = 1000;

/** What one node holds of a session. */
export interface Block {
  readonly hash: string;
  left: number;
  /** The store was asked and has not answered. */
  asking: boolean;
  /** When to ask for the second time, after the store had nothing left; null: not scheduled. */
  askAgainAt: number | null;
  /** The store had nothing left, twice. */
  usedUp: boolean;
  awayUntil: number;
  usedAt: number;
}

/** `later`: the store is asked, and `granted` follows. */
export type Counted = "counted" | "used up" | "away" | "later";

export class Reservations {
  readonly #port: RequestCountPort;
  /** Blocks that have something left or are to be requested again. */
  readonly #active = new Set<Block>();

  constructor(port: RequestCountPort) {
    this.#port = port;
  }

  open(hash: string): Block {
    return {
      hash,
      left: 0,
      asking: false,
      askAgainAt: null,
      usedUp: false,
      awayUntil: 0,
      usedAt: 0,
    };
  }

  count(block: Block, now: number): Counted {
    if (block.left > 0) {
      block.left -= 1;
      block.usedAt = now;
      return "counted";
    }
    if (block.usedUp) return "used up";
    if (now < block.awayUntil) return "away";
    if (!block.asking && block.askAgainAt === null) this.#ask(block);
    return "later";
  }

  /**
   * The store's answer: the number granted, or null if it could not answer. True: waiting messages
   * can continue.
   */
  granted(block: Block, requests: number | null, now: number): boolean {
    block.asking = false;
    const isSecond = block.askAgainAt !== null;
    if (requests === 0 && !isSecond) {
      block.askAgainAt = now + ASK_AGAIN_MS;
      this.#active.add(block);
      return false;
    }
    block.askAgainAt = null;
    if (requests === null) block.awayUntil = now + AWAY_MS;
    else if (requests === 0) block.usedUp = true;
    else {
      block.left += requests;
      block.usedAt = now;
      this.#active.add(block);
    }
    return true;
  }

  /** Returns what is left to the store. */
  giveBack(block: Block): void {
    if (block.left === 0) return;
    this.#port.saveRequestsUsed(block.hash, 0, -block.left);
    block.left = 0;
  }

  tick(now: number): void {
    for (const block of this.#active) {
      if (block.askAgainAt !== null) {
        if (now >= block.askAgainAt && !block.asking) this.#ask(block);
      } else if (block.left === 0) {
        this.#active.delete(block);
      } else if (now - block.usedAt >= GIVE_BACK_MS) {
        this.giveBack(block);
      }
    }
  }

  #ask(block: Block): void {
    block.asking = true;
    this.#port.reserveRequests?.(block.hash);
  }
}
