/**
 * The bindings of one user (section 3, Routing): the first part of a sid to a client's connection
 * and the agent it speaks with there. The first binder wins while its connection lives; another
 * connection of the same session token takes over. A binding does not care whether its agent is
 * connected, so it outlives the agent's reconnect.
 */
import { MAX_BINDINGS_PER_CONNECTION } from "@blindrelay/protocol";

/** One connection of a client, as far as bindings care. */
export interface Binder {
  readonly sessionHash: string;
  /** First parts bound to this connection, oldest first; kept by `Bindings` alone. */
  readonly bound: Set<string>;
}

interface Binding<B> {
  client: B;
  readonly agentId: string;
}

export class Bindings<B extends Binder> {
  readonly #byFirst = new Map<string, Binding<B>>();

  /** What a client's envelope does. False when another connection or agent has the sid. */
  bind(first: string, client: B, agentId: string): boolean {
    const binding = this.#byFirst.get(first);
    if (binding === undefined) {
      this.#byFirst.set(first, { client, agentId });
      this.#own(client, first);
      return true;
    }
    return binding.agentId === agentId && this.#takeOver(binding, first, client);
  }

  /** Where a client's bare packet goes: an agent, nowhere yet, or not to this client's agent. */
  agentFor(first: string, client: B): { agentId: string } | "unbound" | "in use" {
    const binding = this.#byFirst.get(first);
    if (binding === undefined) {
      return "unbound";
    }
    return this.#takeOver(binding, first, client) ? binding : "in use";
  }

  /** Which client an agent's packet goes to; null unless the binding names this very agent. */
  clientFor(first: string, agentId: string): B | null {
    const binding = this.#byFirst.get(first);
    return binding?.agentId === agentId ? binding.client : null;
  }

  /** Disconnector every binding of a connection that ends. */
  drop(client: B): void {
    for (const first of client.bound) {
      this.#byFirst.delete(first);
    }
    client.bound.clear();
  }

  /** Disconnector every binding to an agent that was deleted. */
  dropAgent(agentId: string): void {
    for (const [first, binding] of this.#byFirst) {
      if (binding.agentId === agentId) {
        binding.client.bound.delete(first);
        this.#byFirst.delete(first);
      }
    }
  }

  get size(): number {
    return this.#byFirst.size;
  }

  #takeOver(binding: Binding<B>, first: string, client: B): boolean {
    if (binding.client === client) {
      return true;
    }
    if (binding.client.sessionHash !== client.sessionHash) {
      return false;
    }
    binding.client.bound.delete(first);
    binding.client = client;
    this.#own(client, first);
    return true;
  }

  #own(client: B, first: string): void {
    client.bound.add(first);
    if (client.bound.size > MAX_BINDINGS_PER_CONNECTION) {
      const [oldest] = client.bound;
      client.bound.delete(oldest as string);
      this.#byFirst.delete(oldest as string);
    }
  }
}
