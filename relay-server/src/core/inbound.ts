/**
 * What happens to a message before it is routed (section 3): too large or unreadable, too many a
 * second, before `auth`, malformed, counted against its session. In this order, and each refusal
 * names its code.
 */
import {
  CLOSE_POLICY,
  type ErrorCode,
  MAX_RATE_REFUSALS,
  MAX_UNREADABLE_IN_A_ROW,
  RATE_REFUSALS_FORGOTTEN_PER_SECOND,
} from "@blindrelay/protocol";
import {
  type AuthMessage,
  decodeForRelay,
  type Envelope,
  type MessageForRelay,
  type PacketHead,
  PONG_TEXT,
  UNREADABLE,
} from "@blindrelay/protocol/wire";
import type { Authenticator } from "./auth.ts";
import type { AgentPeer, ClientEnvelope, ClientPeer, Connection, Peer } from "./connection.ts";
import type { Disconnector } from "./disconnect.ts";
import { hold, release, startHolding } from "./hold-queue.ts";
import type { Routing } from "./routing.ts";
import type { HubState } from "./state.ts";

export class Inbound {
  readonly #state: HubState;
  readonly #disconnector: Disconnector;
  readonly #authenticator: Authenticator;
  readonly #routing: Routing;

  constructor(
    state: HubState,
    disconnector: Disconnector,
    authenticator: Authenticator,
    routing: Routing,
  ) {
    this.#state = state;
    this.#disconnector = disconnector;
    this.#authenticator = authenticator;
    this.#routing = routing;
  }

  /** One message, handled now or held until the look-up under way is answered. */
  take(connection: Connection, text: string | null, frame: Uint8Array, now: number): void {
    if (connection.state === "closing") {
      return;
    }
    if (connection.held === null) {
      this.#handle(connection, text, frame, now);
    } else if (!hold(connection, text, frame)) {
      this.#overRate(connection, text === null ? UNREADABLE : decodeForRelay(text), now);
    }
  }

  /** A look-up was answered: what waited behind it goes on. */
  resume(connection: Connection, now: number): void {
    release(connection, (text, frame) => this.take(connection, text, frame, now));
  }

  #handle(connection: Connection, text: string | null, frame: Uint8Array, now: number): void {
    const { maxMessageBytes, ratePerSecond, rateBurst } = this.#state.limits;
    if (frame.length > maxMessageBytes) {
      this.#unreadable(connection, "TOO_LARGE", now);
      return;
    }
    const message = text === null ? UNREADABLE : decodeForRelay(text);
    if (message.kind === "unreadable") {
      this.#unreadable(connection, "BAD_MESSAGE", now);
      return;
    }
    if (message.kind !== "unknown") {
      connection.unreadableInARow = 0;
    }
    if (message.kind === "pong") {
      connection.pingsUnanswered = 0; // whatever its rate: nothing else answers a ping
    }
    if (connection.peer === null && message.kind === "auth") {
      this.#auth(connection, message, now); // three failures bound it, so the burst stays whole
    } else if (!connection.rate.take(ratePerSecond, rateBurst, now)) {
      this.#overRate(connection, message, now);
    } else if (connection.peer === null) {
      this.#refuse(connection, "AUTH_REQUIRED", message, now);
    } else {
      this.#online(connection.peer, message, frame, now);
    }
  }

  /** Says so, and after too many that did not help closes. */
  #overRate(connection: Connection, message: MessageForRelay, now: number): void {
    this.#refuse(connection, "RATE_LIMITED", message, now);
    if (!connection.patience.take(RATE_REFUSALS_FORGOTTEN_PER_SECOND, MAX_RATE_REFUSALS, now)) {
      this.#state.counters.closedForRate += 1;
      this.#disconnector.end(connection, CLOSE_POLICY, "RATE_LIMITED", now);
    }
  }

  #unreadable(connection: Connection, code: "TOO_LARGE" | "BAD_MESSAGE", now: number): void {
    this.#state.controlMessages.error(connection, code, null, now);
    connection.unreadableInARow += 1;
    if (connection.unreadableInARow >= MAX_UNREADABLE_IN_A_ROW) {
      this.#disconnector.end(connection, CLOSE_POLICY, "too many unreadable messages", now);
    }
  }

  #auth(connection: Connection, message: AuthMessage, now: number): void {
    const request = this.#authenticator.ask(connection, message, now);
    if (request !== null) {
      this.#startLookUp(connection);
      this.#state.port.authenticate(connection, request);
    }
  }

  #online(peer: Peer, message: MessageForRelay, frame: Uint8Array, now: number): void {
    const { controlMessages, counters } = this.#state;
    switch (message.kind) {
      case "relay":
      case "packet":
        counters.received += 1;
        if (peer.role === "client") {
          this.#fromClient(peer, message, frame, now);
        } else {
          this.#fromAgent(peer, message, frame, now);
        }
        break;
      case "ping":
        controlMessages.send(peer.connection, PONG_TEXT, now);
        break;
      case "auth":
        controlMessages.error(peer.connection, "BAD_MESSAGE", null, now, "Already authenticated");
        break;
      case "unknown":
        controlMessages.error(peer.connection, "UNKNOWN_TYPE", null, now);
        break;
    }
  }

  #fromClient(
    client: ClientPeer,
    message: Envelope | PacketHead,
    frame: Uint8Array,
    now: number,
  ): void {
    const { controlMessages, counters, sessions } = this.#state;
    const { connection, session } = client;
    const fault = message.kind === "relay" ? clientFault(message) : null;
    if (fault !== null) {
      controlMessages.refuse(connection, "BAD_MESSAGE", message, now, fault);
    } else if (now >= session.expiresAtMs) {
      counters.drop("SESSION_EXPIRED");
      this.#disconnector.endWith(connection, "SESSION_EXPIRED", message, now);
    } else if (!sessions.count(session)) {
      counters.drop("LIMIT_EXCEEDED");
      this.#disconnector.endWith(connection, "LIMIT_EXCEEDED", message, now);
    } else if (message.kind === "packet") {
      this.#routing.packetFromClient(client, message, frame, now);
    } else {
      this.#envelopeFromClient(client, message as ClientEnvelope, frame, now);
    }
  }

  #envelopeFromClient(
    client: ClientPeer,
    envelope: ClientEnvelope,
    frame: Uint8Array,
    now: number,
  ): void {
    const { connection } = client;
    const owner = this.#routing.ownerOf(envelope.agentId);
    if (owner === undefined) {
      connection.unrouted = { envelope, frame };
      this.#startLookUp(connection);
      this.#state.port.findOwner(connection, envelope.agentId);
    } else {
      this.#routing.envelopeFromClient(client, envelope, owner, frame, now);
    }
  }

  #fromAgent(
    agent: AgentPeer,
    message: Envelope | PacketHead,
    frame: Uint8Array,
    now: number,
  ): void {
    if (message.kind === "packet") {
      this.#routing.packetFromAgent(agent, message, frame, now);
      return;
    }
    const fault = agentFault(message, agent.agentId);
    if (fault !== null) {
      this.#state.controlMessages.refuse(agent.connection, "BAD_MESSAGE", message, now, fault);
    } else {
      this.#routing.envelopeFromAgent(agent, message, frame, now);
    }
  }

  /** Refuses a message of any kind; one that was to be forwarded is counted as dropped. */
  #refuse(connection: Connection, code: ErrorCode, message: MessageForRelay, now: number): void {
    const { controlMessages, counters } = this.#state;
    if (message.kind === "relay" || message.kind === "packet") {
      counters.received += 1;
      controlMessages.refuse(connection, code, message, now);
    } else {
      controlMessages.error(connection, code, null, now);
    }
  }

  #startLookUp(connection: Connection): void {
    connection.askedAt = this.#state.revocations.mark();
    startHolding(connection);
  }
}

const clientFault = (envelope: Envelope): string | null =>
  envelope.fault ?? (envelope.agentId === null ? "agent_id is missing" : null);

const agentFault = (envelope: Envelope, agentId: string): string | null =>
  envelope.fault ??
  (envelope.agentId !== null && envelope.agentId !== agentId
    ? "agent_id must be the agent's own"
    : null);
