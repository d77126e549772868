/**
 * The agents on other nodes whose users have clients here: enough to notify those clients of
 * connects and disconnects, as a single relay does. Reports about an agent are ordered by its login
 * number, so reports that overtake each other do no harm.
 */
import type { BusPort, OnlineAgent, RemotePresence } from "../bus.ts";
import type { User } from "../connections/connection.ts";
import type { Peers } from "../connections/peers.ts";
import type { Presence } from "../presence/presence.ts";
import type { RemoteRouting } from "./remote-routing.ts";

/** How long an agent that moves between nodes still counts as online. */
export const MOVING_MS = 5000;
/** Per user; an account has fewer agents. */
const MAX_PER_USER = 100_000;

/** What this part uses of the hub's state. */
interface State {
  readonly bus: BusPort;
  readonly peers: Peers;
  readonly presence: Presence;
  readonly remoteRouting: RemoteRouting;
}

export class RemoteAgents {
  readonly #state: State;
  /** Agents that are moving, in order of when that began. */
  #moving: { userId: string; agentId: string; agent: RemotePresence; until: number }[] = [];

  constructor(state: State) {
    this.#state = state;
  }

  /**
   * A node has these agents. `isNews`: all clients are notified of agents that were not known;
   * otherwise only clients that asked for a snapshot.
   */
  online(
    userId: string,
    node: string,
    agents: readonly OnlineAgent[],
    isNews: boolean,
    now: number,
  ): void {
    const { peers, presence } = this.#state;
    const user = peers.find(userId);
    if (user === undefined || user.clients.size === 0) return;
    const found: string[] = [];
    for (const { agentId, loginNumber, onlineForMs } of agents) {
      const known = user.abroad.get(agentId);
      if (user.agents.has(agentId)) continue;
      if (known !== undefined && known.loginNumber > loginNumber) continue;
      if (known === undefined && user.abroad.size >= MAX_PER_USER) continue;
      const onlineSince = now - onlineForMs;
      user.abroad.set(agentId, { node, loginNumber, onlineSince, moving: false });
      if (known === undefined && isNews) presence.announce(user, agentId, true, now);
      else if (known === undefined) found.push(agentId);
      if (known === undefined || known.node !== node || known.moving) this.#bind(user, agentId);
    }
    presence.addToSnapshots(user, found, now);
  }

  /** An agent has left its node. `moving`: it is expected on another one. */
  offline(
    userId: string,
    agentId: string,
    loginNumber: number,
    moving: boolean,
    now: number,
  ): void {
    const user = this.#state.peers.find(userId);
    const known = user?.abroad.get(agentId);
    if (user === undefined || known === undefined || known.loginNumber > loginNumber) return;
    if (moving) this.#expect(user, agentId, known, now);
    else this.#forget(user, agentId, now);
  }

  /** An agent of this node moves to another one. */
  yielded(user: User, agentId: string, agent: Omit<RemotePresence, "moving">, now: number): void {
    if (user.clients.size === 0) return;
    const { node, loginNumber, onlineSince } = agent;
    const remote = { node, loginNumber, onlineSince, moving: false };
    user.abroad.set(agentId, remote);
    this.#expect(user, agentId, remote, now);
  }

  /** A node has announced its end: its agents have connected elsewhere, or are about to. */
  nodeLeft(node: string, now: number): void {
    for (const user of this.#state.peers.users()) this.#expectFrom(user, node, now);
  }

  /** A node has been gone for so long that its agents are no longer expected elsewhere. */
  nodeLost(node: string, now: number): void {
    for (const user of this.#state.peers.users()) {
      for (const [agentId, agent] of user.abroad) {
        if (agent.node === node) this.#forget(user, agentId, now);
      }
    }
  }

  /** The bus was silent: agents that no node reports again within `MOVING_MS` count as gone. */
  doubt(now: number): void {
    for (const user of this.#state.peers.users()) {
      for (const [agentId, agent] of user.abroad) this.#expect(user, agentId, agent, now);
    }
  }

  /** A node is about to list its agents of a user: agents that it does not list count as gone. */
  doubtAt(userId: string, node: string, now: number): void {
    const user = this.#state.peers.find(userId);
    if (user !== undefined) this.#expectFrom(user, node, now);
  }

  /** By node: the known login numbers of a user's agents. */
  loginsOf(userId: string): Map<string, number[]> {
    const logins = new Map<string, number[]>();
    for (const { node, loginNumber, moving } of this.#state.peers.find(userId)?.abroad.values() ??
      []) {
      if (moving) continue; // its node has already reported that it left
      const there = logins.get(node);
      if (there === undefined) logins.set(node, [loginNumber]);
      else there.push(loginNumber);
    }
    return logins;
  }

  tick(now: number): void {
    let due = 0;
    for (const { userId, agentId, agent, until } of this.#moving) {
      if (until > now) break;
      due += 1;
      const user = this.#state.peers.find(userId);
      // If it has connected again, another entry is there.
      if (user?.abroad.get(agentId) === agent) this.#forget(user, agentId, now);
    }
    if (due > 0) this.#moving = this.#moving.slice(due);
  }

  #expectFrom(user: User, node: string, now: number): void {
    for (const [agentId, agent] of user.abroad) {
      if (agent.node === node) this.#expect(user, agentId, agent, now);
    }
  }

  #expect(user: User, agentId: string, agent: RemotePresence, now: number): void {
    if (agent.moving) return;
    agent.moving = true;
    this.#moving.push({ userId: user.id, agentId, agent, until: now + MOVING_MS });
  }

  #forget(user: User, agentId: string, now: number): void {
    user.abroad.delete(agentId);
    if (!user.agents.has(agentId)) this.#state.presence.announce(user, agentId, false, now);
  }

  /**
   * Tells its new node at once which sessions lead here, so that events need not wait for a call.
   */
  #bind(user: User, agentId: string): void {
    if (user.bindings.isEmpty) return;
    const { bus, remoteRouting } = this.#state;
    for (const [client, firsts] of user.bindings.of(agentId)) {
      if (client.origin === null) bus.bind(agentId, remoteRouting.originOf(client), firsts);
    }
  }
}
