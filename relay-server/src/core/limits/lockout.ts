/**
 * Failed authentications by address, over REST and `/wss` together (section 3, "lockout scope"):
 * the fifth failure within 300 s locks the address out for 600 s, also for valid tokens. The code
 * that checks a credential decides what counts as a failure.
 */
import { LOCKOUT_FAILURES, LOCKOUT_S, LOCKOUT_WINDOW_S } from "@blindrelay/protocol";
import { addressKey } from "./address-group.ts";
import { UnknownSessions } from "./unknown-sessions.ts";

interface LockoutLimits {
  failures: number;
  windowS: number;
  durationS: number;
  /** Addresses remembered at once; the one with the oldest last failure is evicted first. */
  maxAddresses: number;
}

const LOCKOUT_LIMITS: LockoutLimits = {
  failures: LOCKOUT_FAILURES,
  windowS: LOCKOUT_WINDOW_S,
  durationS: LOCKOUT_S,
  maxAddresses: 100_000, // about 20 MB; causing evictions gains an attacker nothing
};

/** `failedAt` is kept while the address may still try, `until` while it is locked out. */
type Entry = { failedAt: number[]; until: number | null };

/** Pure: every call takes the time in milliseconds; one clock for all callers. */
export class Lockout {
  readonly limits: LockoutLimits;
  /** Refused apart from the failures that are counted here. */
  readonly unknownSessions = new UnknownSessions();
  /** How often an address was locked out, since the start. */
  lockouts = 0;
  /** Counted failures, since the start. */
  failures = 0;
  /** Called for each counted failure, for the other nodes. */
  onFailure: (address: string) => void = () => undefined;
  /** In order of the last failure, oldest first. */
  #entries = new Map<string, Entry>();

  constructor(limits: Partial<LockoutLimits> = {}) {
    this.limits = { ...LOCKOUT_LIMITS, ...limits };
  }

  /** Whole seconds, rounded up, for which the address is still locked out; 0 when it is not. */
  secondsLeft(address: string, nowMs: number): number {
    const until = this.#entries.get(addressKey(address))?.until ?? null;
    return until === null || until <= nowMs ? 0 : Math.ceil((until - nowMs) / 1000);
  }

  /** How many more failures within the window lock the address out; 0 while it is. */
  failuresLeft(address: string, nowMs: number): number {
    if (this.secondsLeft(address, nowMs) > 0) return 0;
    const windowStart = nowMs - this.limits.windowS * 1000;
    const failedAt = this.#entries.get(addressKey(address))?.failedAt ?? [];
    return this.limits.failures - failedAt.filter((at) => at > windowStart).length;
  }

  /**
   * Counts one failed authentication. Returns `retry_after`: 0 while attempts are left, the whole
   * duration with the failure that locks the address out, and what is left of it afterwards.
   */
  fail(address: string, nowMs: number): number {
    const failures = this.failures;
    const retryAfterS = this.failElsewhere(address, nowMs);
    if (this.failures > failures) this.onFailure(address);
    return retryAfterS;
  }

  /** The same for a failure that another node counted. */
  failElsewhere(address: string, nowMs: number): number {
    const left = this.secondsLeft(address, nowMs);
    if (left > 0) {
      return left;
    }
    this.failures += 1;
    const key = addressKey(address);
    const windowStart = nowMs - this.limits.windowS * 1000;
    const earlier = this.#entries.get(key);
    const recent = (earlier?.failedAt ?? []).filter((at) => at > windowStart);
    recent.push(nowMs);
    const shutOut = recent.length >= this.limits.failures;
    this.#remember(key, {
      failedAt: shutOut ? [] : recent,
      until: shutOut ? nowMs + this.limits.durationS * 1000 : null,
    });
    if (!shutOut) {
      return 0;
    }
    this.lockouts += 1;
    return this.limits.durationS;
  }

  /** Lifts a lockout and clears the failures of an address; returns whether it had any. */
  forgive(address: string): boolean {
    return this.#entries.delete(addressKey(address));
  }

  /**
   * Forgets expired entries. Late or extra calls are harmless, and cheap if nothing has expired.
   */
  expire(nowMs: number): void {
    for (const [key, entry] of this.#entries) {
      const lastFailure = entry.failedAt.at(-1) ?? 0;
      if ((entry.until ?? lastFailure + this.limits.windowS * 1000) > nowMs) {
        return;
      }
      this.#entries.delete(key);
    }
  }

  get size(): number {
    return this.#entries.size;
  }

  #remember(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (this.#entries.size > this.limits.maxAddresses) {
      const [oldest] = this.#entries.keys();
      this.#entries.delete(oldest as string);
    }
  }
}
