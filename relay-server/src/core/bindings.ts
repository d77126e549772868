/**
 * The bindings of one user (section 3, Routing): the first part of a sid to a client's connection
 * and the agent it speaks with there. The first binder wins while its connection lives; another
 * connection of the same session token takes over. A binding does not care whether its agent is
 * connected, so it outlives the agent's reconnect.
 *
 * A connection that has too many loses the least recently used. A message counts as a use in either
 * direction, so the answer to a call finds its binding however long the client has had it.
 */
import { MAX_BINDINGS_PER_CONNECTION } from "@blindrelay/protocol";

/** One connection of a client, as far as bindings care. */
export interface Binder {
  readonly sessionHash: string;
  /** First parts bound to this connection, least recently used first; kept by `Bindings` alone. */
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
    return binding.agentId === agentId && this.#use(binding, first, client);
  }

  /** Where a client's bare packet goes: an agent, nowhere yet, or not to this client's agent. */
  agentFor(first: string, client: B): { agentId: string } | "unbound" | "in use" {
    const binding = this.#byFirst.get(first);
    if (binding === undefined) {
      return "unbound";
    }
    return this.#use(binding, first, client) ? binding : "in use";
  }

  /** Which client an agent's packet goes to; null unless the binding names this very agent. */
  clientFor(first: string, agentId: string): B | null {
    const binding = this.#byFirst.get(first);
    if (binding?.agentId !== agentId) {
      return null;
    }
    refresh(binding.client, first);
    return binding.client;
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

  /** A client's message goes by a binding. False when that is another session's. */
  #use(binding: Binding<B>, first: string, client: B): boolean {
    if (binding.client === client) {
      refresh(client, first);
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
      const [leastUsed] = client.bound;
      client.bound.delete(leastUsed as string);
      this.#byFirst.delete(leastUsed as string);
    }
  }
}

/** Makes a binding the most recently used of its connection. */
const refresh = (client: Binder, first: string): void => {
  client.bound.delete(first);
  client.bound.add(first);
};
