/**
 * Shares the hub's time between users, so that a user who sends much delays only their own
 * messages. In each turn of the event loop the hub handles a user's messages, from all of the
 * user's connections, until the user's share is used up; the rest is held until the next turn, in
 * which all sockets are read again. Nothing is lost. All unauthenticated connections together have
 * one share, and so have the clients of one user's access keys.
 *
 * A user who has been the only sender for a while gets larger shares, because fewer turns mean
 * fewer writes and fewer sockets that stop and start. The first message of another user ends that.
 * Larger shares are bounded too, because that message waits for the end of the turn, as does REST,
 * which begins requests once a turn (http/limits/pace.ts).
 */

import {
  ALONE_AFTER_TURNS,
  ALONE_TURN_COST,
  BYTES_PER_COST,
  UNAUTHENTICATED_TURN_COST,
} from "../limits/limits.ts";
import { UserShare } from "../limits/user-share.ts";
import { type Connection, shareOf } from "./connection.ts";

/** What it asks of the process around the hub. */
export interface TurnPort {
  /** Answered by `hub.turn(now)`, once everything else that is due has had its turn. */
  nextTurn(): void;
}

export class FairScheduler {
  readonly #port: TurnPort;
  readonly #unauthenticated = new UserShare<Connection>(UNAUTHENTICATED_TURN_COST);
  /** Shares that are renewed with the next turn. */
  readonly #due = new Set<UserShare<Connection>>();
  #asked = false;
  /** The number of turns, and the one from which `#last` counts as alone if nobody else sends. */
  #turn = 0;
  #aloneFrom = ALONE_AFTER_TURNS;
  /** The share used last. */
  #last: UserShare<Connection> | null = null;

  constructor(port: TurnPort) {
    this.#port = port;
  }

  /** Whether a message of this many bytes may be handled now; if so, it is charged. */
  take(connection: Connection, bytes: number): boolean {
    const share = this.shareOf(connection);
    if (share !== this.#last) this.#another(share);
    if (share.left <= 0) return false;
    share.left -= 1 + bytes / BYTES_PER_COST;
    // A user who sends little in each turn has a full share in each, and never waits.
    if (share.left < share.turnCost / 2) this.#renew(share);
    return true;
  }

  /** Charges for work beyond a message's own. */
  charge(connection: Connection, cost: number): void {
    this.shareOf(connection).left -= cost;
  }

  /** The connection's messages are held until its user's next turn. */
  wait(connection: Connection): void {
    const share = this.shareOf(connection);
    // What it said on its last link comes before what it says on the next one.
    if (connection.isGoing) share.waiting = new Set([connection, ...share.waiting]);
    else share.waiting.add(connection);
    this.#renew(share);
  }

  /** Whether it waits for that. */
  awaits(connection: Connection): boolean {
    return this.shareOf(connection).waiting.has(connection);
  }

  /**
   * The next turn: `resume` handles what a connection holds, some of which may have to wait again.
   */
  next(resume: (connection: Connection) => void): void {
    this.#asked = false;
    this.#turn += 1;
    for (const share of [...this.#due]) {
      this.#due.delete(share);
      const cost = this.#isAlone(share) ? ALONE_TURN_COST : share.turnCost;
      share.left = Math.min(cost, share.left + cost);
      for (const connection of share.waiting) {
        if (share.left <= 0) break;
        share.waiting.delete(connection);
        resume(connection);
      }
      // Also where connections still wait: the share is used up then.
      if (share.left < share.turnCost / 2) this.#renew(share);
    }
  }

  /** Asks for the next turn, once. */
  ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    this.#port.nextTurn();
  }

  #isAlone(share: UserShare<Connection>): boolean {
    return share === this.#last && this.#turn >= this.#aloneFrom;
  }

  /** Another user sends now; the previous one may be in the middle of a larger turn. */
  #another(share: UserShare<Connection>): void {
    if (this.#last !== null) {
      this.#last.left = Math.min(this.#last.left, this.#last.turnCost);
      this.#aloneFrom = this.#turn + ALONE_AFTER_TURNS;
    }
    this.#last = share;
  }

  #renew(share: UserShare<Connection>): void {
    this.#due.add(share);
    this.ask();
  }

  /** The share that a connection's messages are charged to. */
  shareOf(connection: Connection): UserShare<Connection> {
    return connection.peer === null ? this.#unauthenticated : shareOf(connection.peer);
  }
}
