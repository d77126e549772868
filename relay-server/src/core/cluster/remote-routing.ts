/**
 * Routes messages of this node's clients to agents on other nodes: messages go out over the bus,
 * answers find their connection here. Authentication, rate, counting and ownership are checked
 * before.
 */
import { decodeForRelay, type Subject } from "@blindrelay/protocol/wire";
import type { BusPort, Origin } from "../bus.ts";
import { isKeyed, type LocalClient } from "../connections/connection.ts";
import type { ControlMessages } from "../connections/control-messages.ts";
import type { Outbox } from "../connections/outbox.ts";
import type { Counters } from "../counters.ts";
import { sees } from "../presence/access-key-views.ts";

/** A server without a subscriber reports that at once; an older message is in transit or lost. */
const TICKET_MS = 3000;
/** Of all tickets: 65,536 usual ones. Beyond that the oldest sender gets no "offline". */
const MAX_TICKET_BYTES = 13_631_488;
/** Of a ticket, apart from its subject: a sid may be as long as a message. */
const TICKET_OVERHEAD_BYTES = 160;
/** Nodes that know one connection as a guest; a cluster has fewer. */
const MAX_NODES = 1024;

/** What this part uses of the hub's state. */
interface State {
  readonly bus: BusPort;
  readonly counters: Counters;
  readonly outbox: Outbox;
  readonly controlMessages: ControlMessages;
}

interface Ticket {
  readonly client: LocalClient;
  readonly agentId: string;
  readonly subject: Subject;
  readonly expiresAt: number;
}

export class RemoteRouting {
  readonly #state: State;
  readonly #travellers = new Map<number, LocalClient>();
  /** In order of expiry. */
  readonly #tickets = new Map<number, Ticket>();
  #ticketBytes = 0;
  #lastConnection = 0;
  #lastTicket = 0;

  constructor(state: State) {
    this.#state = state;
  }

  /** Sends a client's message to an agent that has no link here. */
  send(
    client: LocalClient,
    agentId: string,
    frame: Uint8Array,
    subject: Subject,
    now: number,
  ): void {
    const { bus, counters, controlMessages } = this.#state;
    const ticket = this.#lastTicket + 1;
    const dispatch = bus.deliver(agentId, this.originOf(client), ticket, frame);
    if (dispatch === "sent") {
      this.#lastTicket = ticket;
      const { sid, requestId } = subject;
      const kept = { client, agentId, subject: { sid, requestId }, expiresAt: now + TICKET_MS };
      this.#tickets.set(ticket, kept);
      this.#ticketBytes += bytesOf(kept);
      for (const [oldest] of this.#tickets) {
        if (this.#ticketBytes <= MAX_TICKET_BYTES) break;
        this.#forget(oldest);
      }
      counters.forwardedToNodes += 1;
      counters.forwardedBytes += frame.length;
    } else {
      const code = dispatch === "offline" ? "AGENT_OFFLINE" : "UNAVAILABLE";
      controlMessages.refuse(client.connection, code, subject, now);
    }
  }

  /**
   * No node holds the agent that this message was for. As long as its clients have not been told
   * that it is offline, it is expected back: it is moving, or its node has just been lost.
   */
  nobody(ticket: number, now: number): void {
    const found = this.#forget(ticket);
    if (found === undefined) return;
    const { client, agentId, subject } = found;
    if (client.connection.state === "closing") return;
    const code = client.user.abroad.has(agentId) ? "UNAVAILABLE" : "AGENT_OFFLINE";
    this.#state.controlMessages.refuse(client.connection, code, subject, now);
  }

  /**
   * A message for one of this node's clients, from an agent of `node` or, for null, from that relay
   * itself. False if there is no such client.
   */
  arrive(
    connection: number,
    node: string,
    agentId: string | null,
    text: string,
    frame: Uint8Array,
    now: number,
  ): boolean {
    const client = this.#travellers.get(connection);
    if (client === undefined) return false;
    const { outbox, counters } = this.#state;
    if (agentId !== null && !sees(client, agentId)) {
      counters.drop("AGENT_NOT_FOUND");
    } else if (outbox.offer(client.connection, frame, now)) {
      counters.forwardedToClients += agentId === null ? 0 : 1;
    } else if (agentId === null) {
      counters.controlMessagesDropped += 1;
    } else {
      counters.drop("SLOW_CONSUMER");
      const message = decodeForRelay(text);
      if (message.kind === "relay" || message.kind === "packet") {
        this.#state.bus.refuse(node, agentId, "SLOW_CONSUMER", message);
      }
    }
    return true;
  }

  /** Another node knows this connection as a guest. False if there is no such client. */
  welcomed(connection: number, node: string): boolean {
    const nodes = this.#travellers.get(connection)?.connection.travel?.nodes;
    if (nodes === undefined || nodes.size >= MAX_NODES) return false;
    nodes.add(node);
    return true;
  }

  /** The client's connection ends. */
  leave(client: LocalClient): void {
    const { travel } = client.connection;
    if (travel === null) return;
    this.#travellers.delete(travel.number);
    this.#state.bus.leave(travel.number, travel.nodes);
    client.connection.travel = null;
  }

  /** The identity of a client of this node, as the other nodes know it. */
  originOf(client: LocalClient): Omit<Origin, "node"> {
    const { userId, sessionHash, renews } = client;
    return {
      connection: this.#numberOf(client),
      userId,
      sessionHash,
      ...(renews === undefined ? {} : { renews }),
      isKeyed: isKeyed(client),
    };
  }

  tick(now: number): void {
    for (const [ticket, { expiresAt }] of this.#tickets) {
      if (expiresAt > now) return;
      this.#forget(ticket);
    }
  }

  #numberOf(client: LocalClient): number {
    const { connection } = client;
    if (connection.travel === null) {
      this.#lastConnection += 1;
      connection.travel = { number: this.#lastConnection, nodes: new Set() };
      this.#travellers.set(this.#lastConnection, client);
    }
    return connection.travel.number;
  }

  #forget(ticket: number): Ticket | undefined {
    const found = this.#tickets.get(ticket);
    if (found === undefined) return undefined;
    this.#tickets.delete(ticket);
    this.#ticketBytes -= bytesOf(found);
    return found;
  }
}

const bytesOf = ({ subject: { sid, requestId } }: Ticket): number =>
  TICKET_OVERHEAD_BYTES + (sid?.length ?? 0) + (requestId?.length ?? 0);
