/**
 * The bindings of one user (section 3, Routing): the first part of a sid to a client's connection
 * and the agent at its other end. The first binder wins while its connection lives; another
 * connection of the same session token, or one that renews it, takes over. A binding is independent
 * of whether its agent is connected, so it outlives the agent's reconnect.
 *
 * A connection that has too many loses the least recently used, as does one with more than a few
 * while its share (the user's, or that of the user's access keys) has too many. A message counts as
 * a use in either direction, so the answer to a call finds its binding, however old that is.
 */
import { MAX_BINDINGS_PER_CONNECTION } from "@blindrelay/protocol";
import type { Gauges } from "../gauges.ts";
import { FREE_PER_CONNECTION, MAX_BINDINGS_PER_USER } from "../limits/limits.ts";

/** One connection of a client, as far as bindings care. */
interface Binder {
  readonly sessionHash: string;
  /** The session token that it renews, as a hash. */
  readonly renews?: string | undefined;
  /** First parts bound to this connection, least recently used first; kept by `Bindings` alone. */
  readonly bound: Set<string>;
  /** The most recent of them, which most messages use; kept by `Bindings` alone. */
  latest: string | null;
}

/** What a connection's bindings are charged to. */
type ShareOf<B> = (client: B) => { bindings: number };

interface Binding<B> {
  client: B;
  readonly agentId: string;
}

export class Bindings<B extends Binder> {
  readonly #byFirst = new Map<string, Binding<B>>();
  /** By agent, so that moving an agent costs only its own bindings. */
  readonly #byAgent = new Map<string, Set<string>>();
  readonly #gauges: Pick<Gauges, "bindings">;
  readonly #shareOf: ShareOf<B>;

  constructor(gauges: Pick<Gauges, "bindings">, shareOf: ShareOf<B>) {
    this.#gauges = gauges;
    this.#shareOf = shareOf;
  }

  /** Binds the sid of a client's envelope. False if another connection or agent has it. */
  bind(first: string, client: B, agentId: string): boolean {
    const binding = this.#byFirst.get(first);
    if (binding === undefined) {
      this.#byFirst.set(first, { client, agentId });
      const firsts = this.#byAgent.get(agentId);
      if (firsts === undefined) this.#byAgent.set(agentId, new Set([first]));
      else firsts.add(first);
      this.#gauges.bindings += 1;
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

  /** Which client an agent's packet goes to; null unless the binding names this agent. */
  clientFor(first: string, agentId: string): B | null {
    const binding = this.#byFirst.get(first);
    if (binding?.agentId !== agentId) {
      return null;
    }
    refresh(binding.client, first);
    return binding.client;
  }

  get isEmpty(): boolean {
    return this.#byFirst.size === 0;
  }

  /** The same for a sid that nobody has bound yet, as reported by another node. */
  bindIfFree(first: string, client: B, agentId: string): void {
    if (!this.#byFirst.has(first)) this.bind(first, client, agentId);
  }

  /** Which connections are bound to an agent, and by which first parts. */
  of(agentId: string): Map<B, string[]> {
    const found = new Map<B, string[]>();
    for (const first of this.#byAgent.get(agentId) ?? []) {
      const { client } = this.#byFirst.get(first) as Binding<B>;
      const firsts = found.get(client);
      if (firsts === undefined) found.set(client, [first]);
      else firsts.push(first);
    }
    return found;
  }

  /** Ends every binding of a connection that ends. */
  drop(client: B): void {
    for (const first of client.bound) {
      this.#forget(first);
    }
    client.bound.clear();
  }

  /** Ends every binding to a deleted agent. */
  dropAgent(agentId: string): void {
    for (const [client, firsts] of this.of(agentId)) {
      for (const first of firsts) {
        client.bound.delete(first);
        this.#forget(first);
      }
    }
  }

  /** Routes a client's message by a binding. False if it belongs to another session. */
  #use(binding: Binding<B>, first: string, client: B): boolean {
    if (binding.client === client) {
      refresh(client, first);
      return true;
    }
    const { sessionHash } = binding.client;
    if (sessionHash !== client.sessionHash && sessionHash !== client.renews) {
      return false;
    }
    binding.client.bound.delete(first);
    this.#shareOf(binding.client).bindings -= 1;
    binding.client = client;
    this.#own(client, first);
    return true;
  }

  #own(client: B, first: string): void {
    client.bound.add(first);
    client.latest = first;
    const share = this.#shareOf(client);
    share.bindings += 1;
    const max =
      share.bindings > MAX_BINDINGS_PER_USER ? FREE_PER_CONNECTION : MAX_BINDINGS_PER_CONNECTION;
    if (client.bound.size > max) {
      const [leastUsed] = client.bound;
      client.bound.delete(leastUsed as string);
      this.#forget(leastUsed as string);
    }
  }

  #forget(first: string): void {
    const binding = this.#byFirst.get(first);
    if (binding === undefined) return;
    this.#byFirst.delete(first);
    this.#shareOf(binding.client).bindings -= 1;
    const firsts = this.#byAgent.get(binding.agentId);
    firsts?.delete(first);
    if (firsts?.size === 0) this.#byAgent.delete(binding.agentId);
    this.#gauges.bindings -= 1;
  }
}

/** Makes a binding the most recently used of its connection. */
const refresh = (client: Binder, first: string): void => {
  if (client.latest === first) return;
  client.latest = first;
  client.bound.delete(first);
  client.bound.add(first);
};
