/**
 * Core NATS does not report what it loses, so nodes compare what they know about a user's agents: a
 * node with clients of the user sends every other node a digest of the logins that it knows there,
 * and a node with a different digest announces its agents again.
 */

/** Each user is compared, and each agent named, once in this many ticks, of a second each. */
export const ROUND_TICKS = 30;
/** Users in one message: about 20 KB. */
export const USERS_PER_MESSAGE = 500;

/** Digest of logins in any order; no two agents share a number. 0 if there are none. */
export const digestOf = (loginNumbers: Iterable<number>): number => {
  let sum = 0;
  for (const number of loginNumbers) sum = (sum + mixed(number)) >>> 0;
  return sum;
};

/** Consecutive numbers must not cancel out in a sum. */
const mixed = (number: number): number => {
  let hash = Math.imul(number ^ (number / 2 ** 32), 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca77);
  return hash ^ (hash >>> 13);
};

/** Schedules the comparisons: all users in one round, equally many in each tick. */
export class Rounds {
  #ticks = 0;
  #left: string[] = [];

  /** The users of this tick. A user that has just connected has its turn in the next round. */
  next(users: ReadonlyMap<string, unknown>): string[] {
    this.#ticks = (this.#ticks + 1) % ROUND_TICKS;
    if (this.#ticks === 0) {
      this.#left = [...users.keys()];
      return [];
    }
    const share = Math.ceil(this.#left.length / (ROUND_TICKS - this.#ticks));
    return this.#left.splice(0, share).filter((userId) => users.has(userId));
  }
}
