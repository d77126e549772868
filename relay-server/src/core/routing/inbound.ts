/**
 * Checks each message before it is routed (section 3), in this order: too large or unreadable, too
 * many per second, before `auth`, malformed, counted against its session. Each refusal names its
 * code.
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
import type {
  AgentPeer,
  ClientEnvelope,
  ClientPeer,
  Connection,
  Content,
  HeldMessage,
  LocalClient,
  Peer,
} from "../connections/connection.ts";
import { charge, discharge, hold, release, startHolding } from "../connections/hold-queue.ts";
import type { Authenticator } from "../lifecycle/auth.ts";
import type { Disconnector } from "../lifecycle/disconnect.ts";
import { LOOK_UP_COST, UNPAUSED_BYTES } from "../limits/limits.ts";
import { RateBucket } from "../limits/rate-limit.ts";
import type { Counted } from "../limits/request-reservations.ts";
import type { HubState } from "../state.ts";
import type { Routing } from "./routing.ts";

/** Receives an exception thrown while a connection's held messages were handled, which ends it. */
type OnFault = (connection: Connection, error: unknown) => void;

/** For callers that handle the exception themselves. */
export const rethrow: OnFault = (_, error) => {
  throw error;
};

/** For calls that serve several connections: an exception ends only the connection it concerns. */
export const guarded = (connection: Connection, fail: OnFault, work: () => void): void => {
  try {
    work();
  } catch (error) {
    fail(connection, error);
  }
};

export class Inbound {
  readonly #state: HubState;
  readonly #disconnector: Disconnector;
  readonly #authenticator: Authenticator;
  readonly #routing: Routing;
  /** Clients that wait until requests are reserved for their session. */
  readonly #waiting = new Map<string, Set<Connection>>();

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

  /** Handles one message, or holds it for a look-up in progress or for its sender's next turn. */
  take(connection: Connection, content: Content, frame: Uint8Array, now: number): void {
    if (connection.state === "closing") {
      return;
    }
    if (connection.held === null) {
      if (
        isAnswer(connection, content, frame) ||
        this.#state.scheduler.take(connection, frame.length)
      ) {
        this.#handle(connection, content, frame, now);
        return;
      }
      startHolding(connection);
      this.#state.scheduler.wait(connection);
    }
    // An unauthenticated peer may hold as little of the relay's memory as possible.
    const mayGoOn = connection.peer !== null && this.#state.scheduler.awaits(connection);
    const unpausedBytes = mayGoOn ? UNPAUSED_BYTES : 0;
    const share = this.#state.scheduler.shareOf(connection);
    if (!hold(connection, share, content, frame, unpausedBytes)) {
      this.#overRate(connection, decode(content, frame), now);
    }
  }

  /** A look-up was answered, or it is this connection's turn: handles what was held. */
  resume(connection: Connection, now: number): void {
    release(connection, (content, frame) => this.take(connection, content, frame, now));
  }

  #handle(connection: Connection, content: Content, frame: Uint8Array, now: number): void {
    const { maxMessageBytes, ratePerSecond, rateBurst } = this.#state.limits;
    if (frame.length > maxMessageBytes) {
      this.#unreadable(connection, "TOO_LARGE", now);
      return;
    }
    const message = decode(content, frame);
    if (message.kind === "unreadable") {
      this.#unreadable(connection, "BAD_MESSAGE", now);
      return;
    }
    if (message.kind !== "unknown") {
      connection.unreadableInARow = 0;
    }
    if (message.kind === "pong") {
      connection.pingsUnanswered = 0; // even over the rate: nothing else answers a ping
    }
    if (connection.peer === null && message.kind === "auth") {
      this.#auth(connection, message, now); // bounded by three failures per connection
    } else if (!connection.rate.take(ratePerSecond, rateBurst, now)) {
      this.#overRate(connection, message, now);
    } else if (connection.peer === null) {
      this.#refuse(connection, "AUTH_REQUIRED", message, now);
    } else {
      this.#online(connection.peer, message, frame, now);
    }
  }

  /** Refuses with the code, and closes after too many refusals. */
  #overRate(connection: Connection, message: MessageForRelay, now: number): void {
    this.#refuse(connection, "RATE_LIMITED", message, now);
    connection.patience ??= new RateBucket(MAX_RATE_REFUSALS, now);
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
        if (peer.role === "agent") {
          this.#fromAgent(peer, message, frame, now);
        } else if (peer.origin === null) {
          this.#fromClient(peer, message, frame, now);
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
    client: LocalClient,
    message: Envelope | PacketHead,
    frame: Uint8Array,
    now: number,
  ): void {
    const { controlMessages, counters, requestCounts } = this.#state;
    const { connection, session } = client;
    const fault = message.kind === "relay" ? clientFault(message) : null;
    if (fault !== null) {
      controlMessages.refuse(connection, "BAD_MESSAGE", message, now, fault);
    } else if (now >= session.expiresAtMs) {
      counters.drop("SESSION_EXPIRED");
      this.#disconnector.endWith(connection, "SESSION_EXPIRED", message, now);
    } else {
      const counted = requestCounts.count(session, now);
      if (counted === "counted") this.#routeFromClient(client, message, frame, now);
      else this.#notCounted(client, counted, message, frame, now);
    }
  }

  #routeFromClient(
    client: LocalClient,
    message: Envelope | PacketHead,
    frame: Uint8Array,
    now: number,
  ): void {
    if (message.kind === "packet") {
      this.#routing.packetFromClient(client, message, frame, now);
    } else {
      this.#envelopeFromClient(client, message as ClientEnvelope, frame, now);
    }
  }

  #notCounted(
    client: LocalClient,
    why: Exclude<Counted, "counted">,
    message: Envelope | PacketHead,
    frame: Uint8Array,
    now: number,
  ): void {
    const { controlMessages, counters } = this.#state;
    const { connection, sessionHash } = client;
    if (why === "used up") {
      counters.drop("LIMIT_EXCEEDED");
      this.#disconnector.endWith(connection, "LIMIT_EXCEEDED", message, now);
    } else if (why === "away" || !this.#charge(connection, frame)) {
      controlMessages.refuse(connection, "UNAVAILABLE", message, now);
    } else {
      connection.uncounted = { client, message, frame };
      startHolding(connection);
      const waiting = this.#waiting.get(sessionHash);
      if (waiting === undefined) this.#waiting.set(sessionHash, new Set([connection]));
      else waiting.add(connection);
    }
  }

  /** The reservation of requests for a session was answered: resumes what waited for it. */
  reserved(sessionHash: string, requests: number | null, now: number, fail: OnFault): void {
    if (!this.#state.requestCounts.granted(sessionHash, requests, now)) return;
    const waiting = this.#waiting.get(sessionHash) ?? [];
    this.#waiting.delete(sessionHash);
    for (const connection of waiting) {
      guarded(connection, fail, () => this.#countAgain(connection, now));
    }
  }

  #countAgain(connection: Connection, now: number): void {
    const { uncounted, held } = connection;
    if (uncounted === null) return;
    const { client, message, frame } = uncounted;
    connection.uncounted = null;
    connection.held = null;
    discharge(connection, frame);
    this.#fromClient(client, message, frame, now);
    // It may now wait for something else, and the messages behind it with it.
    const waitsAgain = (connection.held as HeldMessage[] | null) !== null;
    connection.held = held;
    if (!waitsAgain) this.resume(connection, now);
  }

  #envelopeFromClient(
    client: ClientPeer,
    envelope: ClientEnvelope,
    frame: Uint8Array,
    now: number,
  ): void {
    const { connection } = client;
    const owner = this.#routing.ownerOf(envelope.agentId);
    if (owner !== undefined) {
      this.#routing.envelopeFromClient(client, envelope, owner, frame, now);
    } else if (this.#charge(connection, frame)) {
      connection.unrouted = { client, envelope, frame };
      this.#startLookUp(connection);
      this.#state.port.findOwner(connection, envelope.agentId);
    } else {
      this.#state.controlMessages.refuse(connection, "UNAVAILABLE", envelope, now);
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

  /** Refuses a message of any kind; one that should have been forwarded is counted as dropped. */
  #refuse(connection: Connection, code: ErrorCode, message: MessageForRelay, now: number): void {
    const { controlMessages, counters } = this.#state;
    if (message.kind === "relay" || message.kind === "packet") {
      counters.received += 1;
      controlMessages.refuse(connection, code, message, now);
    } else {
      controlMessages.error(connection, code, null, now);
    }
  }

  /** Whether there is room for a message that waits for the store. */
  #charge(connection: Connection, frame: Uint8Array): boolean {
    return charge(connection, this.#state.scheduler.shareOf(connection), frame);
  }

  #startLookUp(connection: Connection): void {
    this.#state.scheduler.charge(connection, LOOK_UP_COST);
    connection.askedAt = this.#state.revocations.mark();
    connection.viewsAskedAt = this.#state.views.mark();
    startHolding(connection);
  }
}

const decode = (content: Content, frame: Uint8Array): MessageForRelay => {
  const text = typeof content === "function" ? content(frame) : content;
  if (text === null) return UNREADABLE;
  return typeof text === "string" ? decodeForRelay(text) : text;
};

/** Whether it answers a ping, which costs its user nothing: the relay has asked for it. */
const isAnswer = ({ pingsUnanswered }: Connection, content: Content, frame: Uint8Array): boolean =>
  pingsUnanswered > 0 &&
  frame.length === PONG_TEXT.length &&
  decode(content, frame).kind === "pong";

const clientFault = (envelope: Envelope): string | null =>
  envelope.fault ?? (envelope.agentId === null ? "agent_id is missing" : null);

const agentFault = (envelope: Envelope, agentId: string): string | null =>
  envelope.fault ??
  (envelope.agentId !== null && envelope.agentId !== agentId
    ? "agent_id must be the agent's own"
    : null);
