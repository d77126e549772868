/**
 * What clients with an access key may see (section 1): the agents of their account that the key's
 * selector matches, as a set that is kept current. All clients of one key share it. A message to an
 * agent outside of it is answered as if there were none, and what such an agent sends is dropped.
 */
import type { AccessKey, AgentLabels, View } from "../connections/access-key.ts";
import type { LocalClient } from "../connections/connection.ts";

/** When a look-up that failed is tried again, and one that takes longer hides its agent. */
const LOOK_EVERY_MS = 1000;
/** A login whose look-up is older than this many changes of labels is refused. */
const KEPT_CHANGES = 1000;

const NOBODY: ReadonlySet<LocalClient> = new Set();

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
  /** Look-ups in progress: one for each agent at a time. */
  readonly #asked = new Map<string, { isStale: boolean; sinceMs: number | null }>();
  /** The latest agents whose labels changed, and how many there were. */
  readonly #recent: string[] = [];
  #changes = 0;
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
    const { view } = client;
    if (view === null) return;
    const shared = this.#views.get(view.keyId);
    if (shared === undefined) this.#views.set(view.keyId, { view, clients: new Set([client]) });
    else shared.clients.add(client);
  }

  remove(client: LocalClient): void {
    if (client.view === null) return;
    const shared = this.#views.get(client.view.keyId);
    if (shared === undefined) return;
    shared.clients.delete(client);
    if (shared.clients.size === 0) this.#views.delete(client.view.keyId);
  }

  clientsOf({ keyId }: View): ReadonlySet<LocalClient> {
    return this.#views.get(keyId)?.clients ?? NOBODY;
  }

  /** Taken when a login's look-up starts; handed to `changedSince` when its answer comes. */
  mark(): number {
    return this.#changes;
  }

  /** The agents whose labels changed since the mark; null if that is no longer known. */
  changedSince(mark: number): string[] | null {
    const count = this.#changes - mark;
    if (count > this.#recent.length) return null;
    return count === 0 ? [] : this.#recent.slice(-count);
  }

  /** An agent's labels changed, or it is new. */
  changed(agentId: string): void {
    this.#recent.push(agentId);
    this.#changes += 1;
    if (this.#recent.length > KEPT_CHANGES) this.#recent.shift();
    this.doubt(agentId);
  }

  /** Has an agent's labels looked up, if anybody has a view. */
  doubt(agentId: string): void {
    if (this.#views.size === 0) return;
    const asked = this.#asked.get(agentId);
    if (asked !== undefined) {
      asked.isStale = true;
      return;
    }
    this.#asked.set(agentId, { isStale: false, sinceMs: null });
    this.#ask(agentId);
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
    if (!this.#isStale(agentId)) this.#unknown.add(agentId);
    return this.#change(agentId, () => false);
  }

  /** A deleted agent; another one of its name is looked up anew. */
  forget(agentId: string): ViewChange[] {
    const asked = this.#asked.get(agentId);
    if (asked !== undefined) asked.isStale = true;
    this.#unknown.delete(agentId);
    return this.#change(agentId, () => false);
  }

  /** Agents that are hidden because the store takes too long. */
  tick(now: number): ViewChange[] {
    if (now - this.#lookedAt < LOOK_EVERY_MS) return [];
    this.#lookedAt = now;
    const hidden: ViewChange[] = [];
    for (const [agentId, asked] of this.#asked) {
      if (asked.sinceMs === null) asked.sinceMs = now;
      else hidden.push(...this.#change(agentId, () => false));
    }
    for (const agentId of this.#unknown) this.doubt(agentId);
    return hidden;
  }

  /** Whether an answer is out of date: then the next one is asked for. */
  #isStale(agentId: string): boolean {
    const isStale = this.#asked.get(agentId)?.isStale === true;
    this.#asked.delete(agentId);
    if (isStale) this.doubt(agentId);
    return isStale;
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
    return changes;
  }
}
