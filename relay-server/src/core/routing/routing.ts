/**
 * Where a message goes (section 3, "Routing"). Every function here forwards the message once, or
 * drops it once and sends the reason to its sender. Session counts, rates and malformed messages
 * have been checked before.
 *
 * | from   | message          | goes to                                                        |
 * |--------|------------------|----------------------------------------------------------------|
 * | client | envelope         | `agent_id`, if it is the user's; a packet inside binds its sid  |
 * | client | bare packet      | the agent its sid is bound to                                  |
 * | agent  | packet, any form | the client its sid is bound to, if bound to this agent         |
 * | agent  | other envelope   | the client that asked under (`agent_id`, `request_id`)         |
 */
import { AGENT_ID_PATTERN } from "@blindrelay/protocol";
import {
  bindablePart,
  type Envelope,
  type PacketHead,
  type Subject,
  withAgentId,
} from "@blindrelay/protocol/wire";
import {
  type AgentPeer,
  type ClientEnvelope,
  type ClientPeer,
  isGuest,
  type Peer,
} from "../connections/connection.ts";
import { sees } from "../presence/access-key-views.ts";
import type { HubState } from "../state.ts";

const AGENT_ID = new RegExp(AGENT_ID_PATTERN);

export class Routing {
  readonly #state: HubState;

  constructor(state: HubState) {
    this.#state = state;
  }

  /**
   * The user who owns an agent: null if there is no such agent, undefined if only the store can
   * tell. A connected agent needs no look-up.
   */
  ownerOf(agentId: string): string | null | undefined {
    const online = this.#state.peers.agent(agentId);
    if (online !== undefined) {
      return online.user.id;
    }
    return AGENT_ID.test(agentId) ? this.#state.ownerCache.get(agentId) : null;
  }

  envelopeFromClient(
    client: ClientPeer,
    envelope: ClientEnvelope,
    owner: string | null,
    frame: Uint8Array,
    now: number,
  ): void {
    const { agentId, sid, requestId } = envelope;
    const { controlMessages, requestIds } = this.#state;
    if (owner !== client.user.id || !sees(client, agentId)) {
      controlMessages.refuse(client.connection, "AGENT_NOT_FOUND", envelope, now);
      return;
    }
    const first = sid === null ? null : bindablePart(sid);
    if (first !== null && !client.user.bindings.bind(first, client, agentId)) {
      controlMessages.refuse(client.connection, "SID_IN_USE", envelope, now);
      return;
    }
    // A packet is routed by its sid alone, so its request_id is neither remembered nor refused;
    // that of an envelope to an agent on another node is remembered there.
    if (sid === null && requestId !== null && client.user.agents.has(agentId)) {
      if (!requestIds.remember(agentId, requestId, client, now)) {
        controlMessages.refuse(client.connection, "REQUEST_ID_IN_USE", envelope, now);
        return;
      }
    }
    this.#toAgent(client, agentId, frame, envelope, now);
  }

  packetFromClient(client: ClientPeer, packet: PacketHead, frame: Uint8Array, now: number): void {
    const { controlMessages } = this.#state;
    const { first } = packet;
    const found = first === null ? "unbound" : client.user.bindings.agentFor(first, client);
    if (found === "unbound") {
      controlMessages.refuse(client.connection, "UNKNOWN_SESSION", packet, now);
    } else if (found === "in use") {
      controlMessages.refuse(client.connection, "SID_IN_USE", packet, now);
    } else if (!sees(client, found.agentId)) {
      controlMessages.refuse(client.connection, "AGENT_NOT_FOUND", packet, now);
    } else {
      this.#toAgent(client, found.agentId, frame, packet, now);
    }
  }

  packetFromAgent(agent: AgentPeer, packet: PacketHead, frame: Uint8Array, now: number): void {
    this.#toClient(agent, this.#clientByFirst(agent, packet.first), frame, packet, now);
  }

  envelopeFromAgent(agent: AgentPeer, envelope: Envelope, frame: Uint8Array, now: number): void {
    const client =
      envelope.sid === null
        ? this.#clientByRequestId(agent, envelope.requestId, now)
        : this.#clientByFirst(agent, bindablePart(envelope.sid));
    const whole = envelope.agentId === null ? withAgentId(frame, agent.agentId) : frame;
    if (whole.length > this.#state.limits.maxMessageBytes) {
      this.#state.controlMessages.refuse(agent.connection, "TOO_LARGE", envelope, now);
      return;
    }
    this.#toClient(agent, client, whole, envelope, now);
  }

  #clientByFirst(agent: AgentPeer, first: string | null): ClientPeer | null {
    return first === null ? null : agent.user.bindings.clientFor(first, agent.agentId);
  }

  #clientByRequestId(agent: AgentPeer, requestId: string | null, now: number): ClientPeer | null {
    return requestId === null
      ? null
      : this.#state.requestIds.clientFor(agent.agentId, requestId, agent.user, now);
  }

  #toAgent(
    from: ClientPeer,
    agentId: string,
    frame: Uint8Array,
    subject: Subject,
    now: number,
  ): void {
    const agent = from.user.agents.get(agentId);
    if (agent === undefined) {
      if (from.origin === null) this.#state.remoteRouting.send(from, agentId, frame, subject, now);
      else this.#state.controlMessages.refuse(from.connection, this.#state.absence, subject, now);
      return;
    }
    const { leaving } = agent.connection;
    if (leaving?.isClosed === true) {
      this.#state.controlMessages.refuse(from.connection, "UNAVAILABLE", subject, now);
    } else if (this.#forward(from, agent, frame, subject, now)) {
      this.#state.counters.forwardedToAgents += 1;
      leaving?.forwarded(subject);
    }
  }

  #toClient(
    from: AgentPeer,
    client: ClientPeer | null,
    frame: Uint8Array,
    subject: Subject,
    now: number,
  ): void {
    from.connection.leaving?.answered(subject);
    if (client === null) {
      this.#state.controlMessages.refuse(from.connection, "UNKNOWN_SESSION", subject, now);
    } else if (!sees(client, from.agentId)) {
      // For that client there is no such agent any more; the agent need not know of keys.
      this.#state.counters.drop("AGENT_NOT_FOUND");
      from.connection.link.unused?.(frame);
    } else if (this.#forward(from, client, frame, subject, now)) {
      if (client.origin === null) this.#state.counters.forwardedToClients += 1;
      else this.#state.counters.forwardedToNodes += 1;
    }
  }

  #forward(from: Peer, to: Peer, frame: Uint8Array, subject: Subject, now: number): boolean {
    if (!this.#offer(from, to, frame, now)) {
      this.#state.controlMessages.refuse(from.connection, "SLOW_CONSUMER", subject, now);
      from.connection.link.unused?.(frame);
      return false;
    }
    this.#state.counters.forwardedBytes += frame.length;
    return true;
  }

  /** A guest's node is told which agent it is: it decides whether its client may hear it. */
  #offer(from: Peer, to: Peer, frame: Uint8Array, now: number): boolean {
    const { bus, outbox } = this.#state;
    if (from.role === "client" || !isGuest(to)) return outbox.offer(to.connection, frame, now);
    if (!bus.hasRoom()) return false;
    bus.answer(to.origin, frame, from.agentId);
    return true;
  }
}
