/**
 * Who is online: clients and agents, by the user they belong to. All routing happens inside one
 * `User`, so that nothing can reach another's by a wrong key.
 */
import { type AgentPeer, type Peer, User } from "./connection.ts";

export class Peers {
  readonly #users = new Map<string, User>();
  readonly #agents = new Map<string, AgentPeer>();

  /**
   * The user's record, made when there is none; it lives until the last peer of the user leaves.
   */
  user(userId: string): User {
    let user = this.#users.get(userId);
    if (user === undefined) {
      user = new User(userId);
      this.#users.set(userId, user);
    }
    return user;
  }

  clientCount(userId: string): number {
    return this.#users.get(userId)?.clients.size ?? 0;
  }

  users(): Iterable<User> {
    return this.#users.values();
  }

  agent(agentId: string): AgentPeer | undefined {
    return this.#agents.get(agentId);
  }

  add(peer: Peer): void {
    if (peer.role === "client") {
      peer.user.clients.add(peer);
    } else {
      peer.user.agents.set(peer.agentId, peer);
      this.#agents.set(peer.agentId, peer);
    }
  }

  /** Takes a peer out; false for an agent that was taken over, whose place is another's already. */
  remove(peer: Peer): boolean {
    if (peer.role === "client") {
      peer.user.clients.delete(peer);
    } else if (this.#agents.get(peer.agentId) === peer) {
      peer.user.agents.delete(peer.agentId);
      this.#agents.delete(peer.agentId);
    } else {
      return false;
    }
    if (peer.user.clients.size === 0 && peer.user.agents.size === 0) {
      this.#users.delete(peer.user.id);
    }
    return true;
  }

  get agentCount(): number {
    return this.#agents.size;
  }
}
