/**
 * Clients of other nodes that call agents of this one. A guest is a client peer whose link leads to
 * the bus, so routing, bindings and errors are the same as for a local client. It has no heartbeat,
 * session or rate here, because its own node handles those. A guest is removed when its user has no
 * agent here, when its node reports that it left, or when that node is gone.
 */
import type { ErrorCode } from "@blindrelay/protocol";
import {
  decodeForRelay,
  type Envelope,
  type PacketHead,
  type Subject,
} from "@blindrelay/protocol/wire";
import type { BusPort, Origin } from "../bus.ts";
import {
  type AgentPeer,
  Connection,
  type Content,
  type Guest,
  shareOf,
  type User,
} from "../connections/connection.ts";
import { hold, release, startHolding } from "../connections/hold-queue.ts";
import type { Disconnector } from "../lifecycle/disconnect.ts";
import type { Frame, HubLink } from "../link.ts";
import type { HubState } from "../state.ts";
import type { Routing } from "./routing.ts";

/** Leads to a guest's node, for the relay's own messages. */
class GuestLink implements HubLink {
  readonly #bus: BusPort;
  readonly #origin: Origin;

  constructor(bus: BusPort, origin: Origin) {
    this.#bus = bus;
    this.#origin = origin;
  }

  send(frame: Frame): void {
    this.#bus.answer(this.#origin, frame, null);
  }

  /** The client's own queue is bounded by its node; here only the bus can be full. */
  queued(): number {
    return this.#bus.hasRoom() ? 0 : Number.POSITIVE_INFINITY;
  }

  close(): void {}
  pause(): void {}
  resume(): void {}
}

/**
 * How often a guest's node is notified of it again. The node reports clients that have left, so a
 * guest does not stay if the first report was lost.
 */
const WELCOME_AGAIN_MS = 30_000;

type ForAgent = Envelope | PacketHead;

/** A node lets in `clientsPerUser` clients of a user, and as many with access keys. */
const guestsLike = ({ node, isKeyed }: Origin, { guests }: User): number => {
  let count = 0;
  for (const { origin } of guests) {
    if (origin.node === node && origin.isKeyed === isKeyed) count += 1;
  }
  return count;
};

/** null: it is not for an agent, and no node sends it. */
const forAgent = (text: string): ForAgent | null => {
  const message = decodeForRelay(text);
  return message.kind === "relay" || message.kind === "packet" ? message : null;
};

/** Nothing else is held. */
const heldMessage = (content: Content): ForAgent => forAgent(content as string) as ForAgent;

export class Guests {
  readonly #state: HubState;
  readonly #disconnector: Disconnector;
  readonly #routing: Routing;
  /** When each guest's node was last notified; in that order. */
  readonly #welcomed = new Map<Guest, number>();

  constructor(state: HubState, disconnector: Disconnector, routing: Routing) {
    this.#state = state;
    this.#disconnector = disconnector;
    this.#routing = routing;
  }

  /** A message from another node's client to an agent. */
  receive(from: Origin, agentId: string, text: string, frame: Uint8Array, now: number): void {
    const message = forAgent(text);
    if (message === null) return;
    this.#state.counters.receivedFromNodes += 1;
    const agent = this.#state.peers.agent(agentId);
    if (agent === undefined) {
      this.#refuse(from, this.#state.absence, message, now);
    } else if (agent.userId !== from.userId) {
      this.#refuse(from, "AGENT_NOT_FOUND", message, now);
    } else {
      const guest = this.#seat(from, agent, now);
      if (guest === null) {
        this.#refuse(from, "UNAVAILABLE", message, now);
        return;
      }
      // Its node knows the binding; here it may be new, for example after the agent moved.
      if (message.kind === "packet" && message.first !== null) {
        guest.user.bindings.bindIfFree(message.first, guest, agentId);
      }
      this.#handle(guest, message, text, frame, now);
    }
  }

  /** There is no room for a message from another node's client. */
  turnAway(from: Origin, text: string, now: number): void {
    const message = forAgent(text);
    if (message !== null) this.#refuse(from, "SLOW_CONSUMER", message, now);
  }

  /** The user's next turn: handles what the guest holds. */
  resume(guest: Guest, now: number): void {
    try {
      release(guest.connection, (content, frame) => {
        this.#handle(guest, heldMessage(content), content as string, frame, now);
      });
    } finally {
      if (guest.connection.isGoing) this.#leave(guest, now);
    }
  }

  /** Binds a guest's sids, which its node knows and this one may not: the agent has moved here. */
  bind(from: Origin, agentId: string, firsts: readonly string[], now: number): void {
    const agent = this.#state.peers.agent(agentId);
    if (agent === undefined || agent.userId !== from.userId) return;
    const guest = this.#seat(from, agent, now);
    if (guest === null) return;
    // Never take them from another connection: the client may have moved too, and sent something.
    for (const first of firsts) guest.user.bindings.bindIfFree(first, guest, agentId);
  }

  /** The guest's node had no room for a message from an agent of this one. */
  refused(agentId: string, code: ErrorCode, subject: Subject, now: number): void {
    const agent = this.#state.peers.agent(agentId);
    if (agent !== undefined) {
      this.#state.controlMessages.refuse(agent.connection, code, subject, now);
    }
  }

  left(node: string, connection: number, now: number): void {
    const guest = this.#state.peers.guest({ node, connection });
    if (guest !== undefined) this.#leave(guest, now);
  }

  /** Messages that it sent before it left are still handled, in their turns. */
  #leave(guest: Guest, now: number): void {
    const { connection } = guest;
    if (connection.state === "closing") return;
    connection.isGoing = this.#state.scheduler.awaits(connection);
    if (!connection.isGoing) this.#disconnector.detach(connection, now);
  }

  /** Removes guests of nodes that are gone, and notifies the nodes of the others again. */
  refresh(isLive: (node: string) => boolean, now: number): void {
    for (const [guest, at] of this.#welcomed) {
      if (now - at < WELCOME_AGAIN_MS) return;
      this.#welcomed.delete(guest);
      if (guest.connection.state === "closing") continue;
      if (isLive(guest.origin.node)) this.#welcome(guest, now);
      else this.#disconnector.detach(guest.connection, now);
    }
  }

  /** Which sessions lead to an agent; `node` is null for clients of this one. */
  bindingsOf(
    userId: string,
    agentId: string,
  ): (Omit<Origin, "node"> & { node: string | null; firsts: string[] })[] {
    const { peers, remoteRouting } = this.#state;
    const bound = peers.find(userId)?.bindings.of(agentId) ?? [];
    return [...bound].map(([client, firsts]) =>
      client.origin === null
        ? { ...remoteRouting.originOf(client), node: null, firsts }
        : { ...client.origin, firsts },
    );
  }

  /** A node is gone, and its clients with it. */
  nodeLost(node: string, now: number): void {
    for (const guest of [...this.#state.peers.guests()]) {
      if (guest.origin.node === node) this.#disconnector.detach(guest.connection, now);
    }
  }

  /** Routes a message, or holds it until the user's next turn, as for local clients. */
  #handle(guest: Guest, message: ForAgent, text: string, frame: Uint8Array, now: number): void {
    const { connection } = guest;
    if (connection.held === null) {
      if (this.#state.scheduler.take(connection, frame.length)) {
        this.#route(guest, message, frame, now);
        return;
      }
      startHolding(connection);
      this.#state.scheduler.wait(connection);
    }
    // The bytes belong to the bus, which reuses them.
    if (!hold(connection, shareOf(guest), text, frame.slice(), Number.POSITIVE_INFINITY)) {
      this.#refuse(guest.origin, "RATE_LIMITED", message, now);
    }
  }

  #route(guest: Guest, message: ForAgent, frame: Uint8Array, now: number): void {
    if (message.kind === "packet") {
      this.#routing.packetFromClient(guest, message, frame, now);
    } else if (message.agentId !== null) {
      const { agentId } = message;
      this.#routing.envelopeFromClient(guest, { ...message, agentId }, guest.userId, frame, now);
    }
  }

  /** Returns the guest, added if it is new; null: its user has too many of its node. */
  #seat(origin: Origin, agent: AgentPeer, now: number): Guest | null {
    const { peers, limits } = this.#state;
    const known = peers.guest(origin);
    if (known !== undefined) return known;
    if (guestsLike(origin, agent.user) >= limits.clientsPerUser) return null;
    const guest: Guest = {
      role: "client",
      clientType: "client",
      connection: this.#connect(origin),
      userId: agent.userId,
      user: agent.user,
      sessionHash: origin.sessionHash,
      renews: origin.renews,
      session: null,
      origin,
      view: null,
      bound: new Set(),
      latest: null,
      requests: new Set(),
    };
    guest.connection.state = "online";
    guest.connection.peer = guest;
    peers.add(guest);
    this.#welcome(guest, now);
    return guest;
  }

  #welcome(guest: Guest, now: number): void {
    this.#state.bus.welcome(guest.origin);
    this.#welcomed.set(guest, now);
  }

  #connect(origin: Origin): Connection {
    return new Connection(new GuestLink(this.#state.bus, origin), "", this.#state.limits, 0);
  }

  /** Also to a client that is no guest here, over a connection for this answer alone. */
  #refuse(to: Origin, code: ErrorCode, subject: Subject, now: number): void {
    const connection = this.#connect(to);
    this.#state.controlMessages.refuse(connection, code, subject, now);
    this.#state.outbox.forget(connection);
  }
}
