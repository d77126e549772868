/**
 * Counts failed logins by user name, from any address, which also stops guessing from
 * many addresses. A name's lockout does not apply to addresses from which that user has logged in,
 * so nobody can lock a user out with wrong guesses.
 */
import { createHash } from "node:crypto";
import { LOCKOUT_S } from "@blindrelay/protocol";
import { addressKey } from "../core/limits/address-group.ts";
import { Lockout } from "../core/limits/lockout.ts";

/**
 * Higher than the limit of an address, so that one address is locked out before it locks a name.
 */
const NAME_FAILURES = 10;
const NAME_WINDOW_S = 600;
/** Of the pairs in memory: the store has the others (known-addresses.ts). */
const MAX_KNOWN = 10_000;

export class UsernameLockout {
  readonly #lockout = new Lockout({
    failures: NAME_FAILURES,
    windowS: NAME_WINDOW_S,
    durationS: LOCKOUT_S,
  });
  /** Called for each counted failure and each new pair, for the other nodes. */
  onFailure: (name: string) => void = () => undefined;
  onKnown: (pair: string) => void = () => undefined;
  /** Pairs of a name and an address it logged in from, least recently used first. */
  readonly #known = new Set<string>();

  /** How often a name was locked, since the start. */
  get lockouts(): number {
    return this.#lockout.lockouts;
  }

  /** Whether the name has recently logged in from this address. */
  isKnown(username: string, address: string): boolean {
    return this.#known.has(pairKey(username, address));
  }

  /** Whole seconds for which this address may not try this name; 0: it may. */
  secondsLeft(username: string, address: string, nowMs: number): number {
    if (this.isKnown(username, address)) return 0;
    return this.#lockout.secondsLeft(nameKey(username), nowMs);
  }

  /** Counts a failure; returns the same as Lockout.fail. */
  fail(username: string, address: string, nowMs: number): number {
    if (this.isKnown(username, address)) return 0;
    const { failures } = this.#lockout;
    const name = nameKey(username);
    const retryAfterS = this.failElsewhere(name, nowMs);
    if (this.#lockout.failures > failures) this.onFailure(name);
    return retryAfterS;
  }

  /** Counts a failure that another node reported through `onFailure`. */
  failElsewhere(name: string, nowMs: number): number {
    this.#lockout.expire(nowMs);
    return this.#lockout.fail(name, nowMs);
  }

  /** Lifts a name's lockout and clears its failures; returns whether it had any. */
  forgive(username: string): boolean {
    return this.#lockout.forgive(nameKey(username));
  }

  /** The name has logged in from this address. */
  succeed(username: string, address: string): void {
    const pair = pairKey(username, address);
    if (!this.#known.has(pair)) this.onKnown(pair);
    this.succeedElsewhere(pair);
  }

  /** The store has this pair. */
  recall(username: string, address: string): void {
    this.succeedElsewhere(pairKey(username, address));
  }

  /** Adds a pair that another node reported through `onKnown`. */
  succeedElsewhere(pair: string): void {
    this.#known.delete(pair);
    this.#known.add(pair);
    if (this.#known.size <= MAX_KNOWN) return;
    const [oldest] = this.#known;
    this.#known.delete(oldest as string);
  }
}

/** A digest, because the name may be long, and may look like an address to the lockout. */
const nameKey = (username: string): string =>
  createHash("sha256").update(username, "utf8").digest("base64url");

const pairKey = (username: string, address: string): string =>
  `${nameKey(username)}/${addressKey(address)}`;
