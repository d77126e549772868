/** Which user owns an agent that is not connected: what the store answered lately, bounded. */
import { MAX_KNOWN_OWNERS } from "./limits.ts";

export class OwnerCache {
  readonly #ownerCache = new Map<string, string>();

  get(agentId: string): string | undefined {
    return this.#ownerCache.get(agentId);
  }

  /** OwnerCache never change; an agent can only be deleted. */
  remember(agentId: string, userId: string): void {
    this.#ownerCache.delete(agentId);
    this.#ownerCache.set(agentId, userId);
    if (this.#ownerCache.size > MAX_KNOWN_OWNERS) {
      const [oldest] = this.#ownerCache.keys();
      this.#ownerCache.delete(oldest as string);
    }
  }

  forget(agentId: string): void {
    this.#ownerCache.delete(agentId);
  }

  get size(): number {
    return this.#ownerCache.size;
  }
}
