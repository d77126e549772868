/**
 * Failed logins by user name, whatever the address (section 4): who guesses from many addresses is
 * stopped too. So that nobody can keep somebody else out by guessing badly, a name's lock-out does
 * not concern addresses from which that name has logged in.
 */
import { LOCKOUT_S } from "@blindrelay/protocol";
import { addressKey } from "../core/address.ts";
import { Lockout } from "../core/lockout.ts";

/** More than an address may fail, so that one address is shut out before it shuts a name. */
const NAME_FAILURES = 10;
const NAME_WINDOW_S = 600;
/** Names are anybody's text; in memory, and gone with the process like the counts of addresses. */
const MAX_KNOWN = 10_000;

export class UsernameLockout {
  readonly #lockout = new Lockout({
    failures: NAME_FAILURES,
    windowS: NAME_WINDOW_S,
    durationS: LOCKOUT_S,
  });
  /** Names with an address of theirs, the one used longest ago first. */
  readonly #known = new Set<string>();

  /** How often a name was shut, since the start. */
  get lockouts(): number {
    return this.#lockout.lockouts;
  }

  /** Whether the name has logged in from this address lately. */
  isKnown(username: string, address: string): boolean {
    return this.#known.has(pairKey(username, address));
  }

  /** Whole seconds for which this address may not try this name; 0: it may. */
  secondsLeft(username: string, address: string, nowMs: number): number {
    if (this.isKnown(username, address)) return 0;
    return this.#lockout.secondsLeft(nameKey(username), nowMs);
  }

  /** Counts a failure; answers as Lockout.fail does. */
  fail(username: string, address: string, nowMs: number): number {
    if (this.isKnown(username, address)) return 0;
    this.#lockout.expire(nowMs);
    return this.#lockout.fail(nameKey(username), nowMs);
  }

  /** Lifts a name's lock-out and forgets its failures; whether there was anything. */
  forgive(username: string): boolean {
    return this.#lockout.forgive(nameKey(username));
  }

  /** The name logged in from here. */
  succeed(username: string, address: string): void {
    const pair = pairKey(username, address);
    this.#known.delete(pair);
    this.#known.add(pair);
    if (this.#known.size <= MAX_KNOWN) return;
    const [oldest] = this.#known;
    this.#known.delete(oldest as string);
  }
}

/** Hex, because a name may hold what the lock-out takes for an address. */
const nameKey = (username: string): string => Buffer.from(username).toString("hex");

const pairKey = (username: string, address: string): string =>
  `${nameKey(username)}/${addressKey(address)}`;
