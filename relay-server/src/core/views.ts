/**
 * What clients with an access key may see (section 1): the agents of their account that the key's
 * selector matches, as a set that is kept current. All clients of one key share it. A message to an
 * agent outside of it is answered as if there were none, and what such an agent sends is dropped.
 */
import type { AccessKey, AgentLabels, View } from "./access-key.ts";
import type { LocalClient } from "./connection.ts";

/** When a look-up that failed is tried again, and ends are looked for. */
const LOOK_EVERY_MS = 1000;

/** Whether an agent exists for a client. A guest's own node has decided that. */
export const sees = ({ view }: { readonly view: View | null }, agentId: string): boolean =>
  view === null || view.agents.has(agentId);

/** An agent appears for the clients of a view, or no longer exists for them. */
export interface ViewChange {
  readonly view: View;
  readonly agentId: string;
  readonly isSeen: boolean;
}

export class Views {
  readonly #ask: (agentId: string) => void;
  /** By key, with the clients that share it. */
  readonly #views = new Map<string, { readonly view: View; readonly clients: Set<LocalClient> }>();
  /** Clients whose key ends by itself. */
  readonly #ending = new Set<LocalClient>();
  /** Look-ups in progress; true: the labels changed again meanwhile. */
  readonly #asked = new Map<string, boolean>();
  /** Agents whose labels could not be looked up: hidden until they are known. */
  readonly #unknown = new Set<string>();
  #lookedAt = 0;

  /** `ask`: has an agent's labels looked up. */
  constructor(ask: (agentId: string) => void) {
    this.#ask = ask;
  }

  /** The view of a client's key; null: it sees all agents. */
  open(key: AccessKey | undefined, userId: string): View | null {
    if (key === undefined || key.matches === null) return null;
    const shared = this.#views.get(key.id);
    if (shared !== undefined) return shared.view;
    const agents = new Set(key.agents);
    return { keyId: key.id, userId, matches: key.matches, agents };
  }

  add(client: LocalClient): void {
    const { key, view } = client;
    if (key !== null && key.expiresAtMs !== null) this.#ending.add(client);
    if (view === null) return;
    const shared = this.#views.get(view.keyId);
    if (shared === undefined) this.#views.set(view.keyId, { view, clients: new Set([client]) });
    else shared.clients.add(client);
  }

  remove(client: LocalClient): void {
    this.#ending.delete(client);
    if (client.view === null) return;
    const shared = this.#views.get(client.view.keyId);
    if (shared === undefined) return;
    shared.clients.delete(client);
    if (shared.clients.size === 0) this.#views.delete(client.view.keyId);
  }

  clientsOf({ keyId }: View): Iterable<LocalClient> {
    return this.#views.get(keyId)?.clients ?? [];
  }

  /** An agent's labels changed, or it is new: has them looked up, if anybody has a view. */
  doubt(agentId: string): void {
    if (this.#views.size === 0) return;
    if (this.#asked.has(agentId)) {
      this.#asked.set(agentId, true);
      return;
    }
    this.#asked.set(agentId, false);
    this.#ask(agentId);
  }

  /** Whether an answer is out of date: then the next one is asked for. */
  #isStale(agentId: string): boolean {
    const isStale = this.#asked.get(agentId) === true;
    this.#asked.delete(agentId);
    if (isStale) this.doubt(agentId);
    return isStale;
  }

  /** Looked up; null: there is no such agent. */
  found(agentId: string, agent: AgentLabels | null): ViewChange[] {
    if (this.#isStale(agentId)) return [];
    this.#unknown.delete(agentId);
    return this.#change(agentId, (view) => {
      if (agent === null || agent.userId !== view.userId) return false;
      return view.matches(agentId, agent.labels);
    });
  }

  /** The look-up failed: the agent is hidden until one succeeds. */
  lost(agentId: string): ViewChange[] {
    if (this.#isStale(agentId)) return [];
    this.#unknown.add(agentId);
    return this.#change(agentId, () => false);
  }

  /** Clients whose key has ended. */
  tick(now: number): LocalClient[] {
    if (now - this.#lookedAt < LOOK_EVERY_MS) return [];
    this.#lookedAt = now;
    for (const agentId of this.#unknown) this.doubt(agentId);
    return [...this.#ending].filter(({ key }) => now >= (key?.expiresAtMs ?? now + 1));
  }

  #change(agentId: string, isSeenBy: (view: View) => boolean): ViewChange[] {
    const changes: ViewChange[] = [];
    for (const { view } of this.#views.values()) {
      const isSeen = isSeenBy(view);
      if (isSeen === view.agents.has(agentId)) continue;
      if (isSeen) view.agents.add(agentId);
      else view.agents.delete(agentId);
      changes.push({ view, agentId, isSeen });
    }
    if (this.#views.size === 0) this.#unknown.clear();
    return changes;
  }
}
