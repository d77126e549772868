/**
 * Decides whose password is hashed first when more users log in than passwords can be hashed, by
 * counting wrong logins by address, and failed ones by network. Users in the networks with the
 * fewest attempts go first: an attacker with thousands of addresses shares the count of the whole
 * network, while a user in a new place has a low one.
 */
import { addressKey } from "../core/limits/address-group.ts";

/** A count is forgotten after one to two of these. */
const PERIOD_MS = 150_000;
/** Per kind and period, about 2 MB in total. Further ones are not counted. */
const MAX_COUNTED = 8192;
/** An address that has failed comes after all others, whatever their networks did. */
const ADDRESS_WEIGHT = 1_000_000;

export class LoginOrder {
  readonly #addresses = new RecentCounts();
  readonly #networks = new RecentCounts();

  /** 0 if nothing was wrong; the higher it is, the later this address gets its turn. */
  of(address: string, nowMs: number): number {
    const key = addressKey(address);
    const own = Math.min(this.#addresses.of(key, nowMs), 1);
    return own * ADDRESS_WEIGHT + this.#networks.of(networkOf(key), nowMs);
  }

  wrong(address: string, nowMs: number): void {
    this.#addresses.count(addressKey(address), nowMs);
    this.unheard(address, nowMs);
  }

  /** Too many callers waited. A caller that retries as fast as possible only falls back. */
  unheard(address: string, nowMs: number): void {
    this.#networks.count(networkOf(addressKey(address)), nowMs);
  }
}

/** The range of one provider: a /16 of IPv4, a /32 of IPv6. */
const networkOf = (key: string): string =>
  key.includes(":")
    ? `${key.split(":").slice(0, 2).join(":")}/32`
    : `${key.split(".").slice(0, 2).join(".")}/16`;

class RecentCounts {
  #current = new Map<string, number>();
  #previous = new Map<string, number>();
  #sinceMs = 0;

  of(key: string, nowMs: number): number {
    this.#forget(nowMs);
    return (this.#current.get(key) ?? 0) + (this.#previous.get(key) ?? 0);
  }

  count(key: string, nowMs: number): void {
    this.#forget(nowMs);
    const counted = this.#current.get(key);
    if (counted === undefined && this.#current.size >= MAX_COUNTED) return;
    this.#current.set(key, (counted ?? 0) + 1);
  }

  #forget(nowMs: number): void {
    const ageMs = nowMs - this.#sinceMs;
    if (ageMs < PERIOD_MS) return;
    this.#previous = ageMs < 2 * PERIOD_MS ? this.#current : new Map();
    this.#current = new Map();
    this.#sinceMs = nowMs;
  }
}
