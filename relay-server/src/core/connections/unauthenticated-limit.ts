/**
 * Limits the connections of an address that have not authenticated: one host could otherwise hold
 * the memory of as many connections as it can open, for thirty seconds each.
 */
import { addressKey } from "../limits/address-group.ts";
import type { Connection } from "./connection.ts";

export class UnauthenticatedLimit {
  readonly #max: number;
  readonly #counts = new Map<string, number>();
  readonly #present = new Set<Connection>();

  constructor(max: number) {
    this.#max = max;
  }

  hasRoom(address: string): boolean {
    return (this.#counts.get(addressKey(address)) ?? 0) < this.#max;
  }

  enter(connection: Connection): void {
    const key = addressKey(connection.address);
    this.#present.add(connection);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** Harmless when repeated. */
  leave(connection: Connection): void {
    if (!this.#present.delete(connection)) return;
    const key = addressKey(connection.address);
    const left = (this.#counts.get(key) ?? 0) - 1;
    if (left > 0) this.#counts.set(key, left);
    else this.#counts.delete(key);
  }
}
