/**
 * The peers that are online, clients and agents, by user. All routing happens inside one `User`, so
 * a wrong key cannot reach another user's peers.
 */
import type { Origin } from "../bus.ts";
import type { Gauges } from "../gauges.ts";
import { type AgentPeer, type Guest, isKeyed, type Peer, User } from "./connection.ts";
import { concerns, type Revocation } from "./revocations.ts";

export class Peers {
  readonly #users = new Map<string, User>();
  readonly #agents = new Map<string, AgentPeer>();
  readonly #guests = new Map<string, Guest>();
  readonly #gauges: Gauges;

  constructor(gauges: Gauges) {
    this.#gauges = gauges;
  }

  /**
   * The user's record, created if there is none; it lives until the last peer of the user leaves.
   */
  user(userId: string): User {
    let user = this.#users.get(userId);
    if (user === undefined) {
      user = new User(userId, this.#gauges);
      this.#users.set(userId, user);
    }
    return user;
  }

  find(userId: string): User | undefined {
    return this.#users.get(userId);
  }

  /** A user's clients that came in with an access key, or those that did not. */
  clientCount(userId: string, withKey: boolean): number {
    let count = 0;
    for (const client of this.#users.get(userId)?.clients ?? []) {
      if (isKeyed(client) === withKey) count += 1;
    }
    return count;
  }

  users(): Iterable<User> {
    return this.#users.values();
  }

  agent(agentId: string): AgentPeer | undefined {
    return this.#agents.get(agentId);
  }

  guest(origin: Pick<Origin, "node" | "connection">): Guest | undefined {
    return this.#guests.get(guestKey(origin));
  }

  guests(): Iterable<Guest> {
    return this.#guests.values();
  }

  add(peer: Peer): void {
    if (peer.role === "client") {
      if (peer.origin === null) {
        peer.user.clients.add(peer);
      } else {
        peer.user.guests.add(peer);
        this.#guests.set(guestKey(peer.origin), peer);
      }
    } else {
      peer.user.agents.set(peer.agentId, peer);
      this.#agents.set(peer.agentId, peer);
    }
  }

  /**
   * Peers of this node that a revocation concerns. Only a session's and a key's visit more than one
   * user.
   */
  concerned(revocation: Revocation): Peer[] {
    return this.#candidates(revocation).filter((peer) => concerns(revocation, peer));
  }

  #candidates(revocation: Revocation): Peer[] {
    if (revocation.kind === "agent") {
      const agent = this.#agents.get(revocation.agentId);
      return agent === undefined ? [] : [agent];
    }
    if (revocation.kind === "session" || revocation.kind === "key") {
      return [...this.#users.values()].flatMap(peersOf);
    }
    const user = this.#users.get(revocation.userId);
    return user === undefined ? [] : peersOf(user);
  }

  /**
   * Removes a peer; false for an agent that was taken over: its place already belongs to another.
   */
  remove(peer: Peer): boolean {
    if (peer.role === "client") {
      if (peer.origin === null) {
        peer.user.clients.delete(peer);
      } else {
        peer.user.guests.delete(peer);
        this.#guests.delete(guestKey(peer.origin));
      }
    } else if (this.#agents.get(peer.agentId) === peer) {
      peer.user.agents.delete(peer.agentId);
      this.#agents.delete(peer.agentId);
    } else {
      return false;
    }
    const { clients, agents, guests } = peer.user;
    if (clients.size === 0 && agents.size === 0 && guests.size === 0) {
      this.#users.delete(peer.user.id);
    }
    return true;
  }

  get agentCount(): number {
    return this.#agents.size;
  }

  get guestCount(): number {
    return this.#guests.size;
  }
}

const peersOf = ({ clients, agents }: User): Peer[] => [...clients, ...agents.values()];

const guestKey = ({ node, connection }: Pick<Origin, "node" | "connection">): string =>
  `${node}/${connection}`;
