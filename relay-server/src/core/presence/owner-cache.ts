/**
 * Remembers the owners of agents that are not connected, from the store's recent answers; bounded.
 */
import { MAX_KNOWN_OWNERS } from "../limits/limits.ts";

export class OwnerCache {
  readonly #owners = new Map<string, string>();

  get(agentId: string): string | undefined {
    return this.#owners.get(agentId);
  }

  /** Owners never change; an agent can only be deleted. */
  remember(agentId: string, userId: string): void {
    this.#owners.delete(agentId);
    this.#owners.set(agentId, userId);
    if (this.#owners.size > MAX_KNOWN_OWNERS) {
      const [oldest] = this.#owners.keys();
      this.#owners.delete(oldest as string);
    }
  }

  forget(agentId: string): void {
    this.#owners.delete(agentId);
  }

  forgetUser(userId: string): void {
    for (const [agentId, owner] of this.#owners) {
      if (owner === userId) this.#owners.delete(agentId);
    }
  }
}
