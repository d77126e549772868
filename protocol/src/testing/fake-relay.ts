/**
 * A relay for tests of clients and agents: the relay's end of each link, using the codecs of
 * ../wire. By default it accepts everybody and answers pings; a test defines anything else. The
 * test also provides the links: a socket, a network in memory, a board's engine.
 */
import { SESSION_MAX_REQUESTS, SESSION_TTL_S } from "../spec.ts";
import {
  type Credentials,
  decodeForAgent,
  decodeForRelay,
  encodeAgentStatus,
  encodeAuthenticated,
  encodeAuthFailed,
  encodeEnvelope,
  encodeError,
  encodeRestarting,
  type MessageForRelay,
  PING_TEXT,
  PONG_TEXT,
  type Subject,
} from "../wire/index.ts";

/** The relay's view of a link: where it writes. */
interface FakeLinkPort {
  send(text: string): void;
  close(code: number, reason: string): void;
}

/** A packet as a peer sent it. */
export interface CarriedPacket {
  /** The packet's own text. */
  readonly text: string;
  /** The full sid; null if the text is no packet. */
  readonly sid: string | null;
  readonly enveloped: boolean;
  /** From the envelope. */
  readonly agentId: string | null;
  readonly requestId: string | null;
}

export interface FakeRelayEvents {
  /** An `auth` arrived. Without this every login succeeds. */
  auth?(link: FakeLink, credentials: Credentials): void;
  packet?(link: FakeLink, packet: CarriedPacket): void;
  /** Any message, before it is answered. */
  message?(link: FakeLink, message: MessageForRelay, text: string): void;
}

export class FakeRelay {
  /** Every link that was ever attached, the newest last. */
  readonly links: FakeLink[] = [];
  readonly events: FakeRelayEvents;

  constructor(events: FakeRelayEvents = {}) {
    this.events = events;
  }

  /** A peer connected; pass what it sends to the result's `receive`. */
  attach(port: FakeLinkPort): FakeLink {
    const link = new FakeLink(this.events, port);
    this.links.push(link);
    return link;
  }
}

/** The relay's end of one link. */
export class FakeLink {
  /** Received messages, oldest first: as texts, and decoded. */
  readonly texts: string[] = [];
  readonly messages: MessageForRelay[] = [];
  /** From the last `auth`. */
  credentials: Credentials | null = null;
  private readonly events: FakeRelayEvents;
  private readonly port: FakeLinkPort;

  constructor(events: FakeRelayEvents, port: FakeLinkPort) {
    this.events = events;
    this.port = port;
  }

  /** The peer sent a message. */
  receive(text: string): void {
    const message = decodeForRelay(text);
    this.texts.push(text);
    this.messages.push(message);
    this.events.message?.(this, message, text);
    if (message.kind === "auth") this.authenticate(message.credentials);
    else if (message.kind === "ping") this.say(PONG_TEXT);
    else if (message.kind === "relay" || message.kind === "packet") {
      const carried = carriedIn(text, message);
      if (carried !== null) this.events.packet?.(this, carried);
    }
  }

  /** The newest message, decoded. */
  last(): MessageForRelay | undefined {
    return this.messages.at(-1);
  }

  // What the relay sends

  /** Any text. */
  say(text: string): void {
    this.port.send(text);
  }

  accept(
    sessionToken: string,
    expiresIn = SESSION_TTL_S,
    maxRequests = SESSION_MAX_REQUESTS,
    renewed = false,
  ): void {
    this.say(encodeAuthenticated(sessionToken, expiresIn, maxRequests, renewed));
  }

  refuse(code: string, error = "Invalid token", retryAfter = 0): void {
    this.say(encodeAuthFailed(error, code, retryAfter));
  }

  ping(): void {
    this.say(PING_TEXT);
  }

  agentStatus(agentId: string, online: boolean): void {
    this.say(encodeAgentStatus(agentId, online, "2026-01-01T00:00:00.000Z"));
  }

  error(code: string, subject: Subject | null = null): void {
    this.say(encodeError(code, code, subject));
  }

  restarting(reconnectIn: number): void {
    this.say(encodeRestarting("The relay restarts.", reconnectIn));
  }

  /** A packet in an envelope; for bare ones use `say`. */
  deliverEnveloped(packet: string, agentId: string, requestId: string | null): void {
    this.say(encodeEnvelope(packet, agentId, requestId));
  }

  close(code: number, reason = ""): void {
    this.port.close(code, reason);
  }

  private authenticate(credentials: Credentials | null): void {
    if (credentials === null) {
      this.refuse("BAD_MESSAGE", "the fake relay cannot read this auth");
      return;
    }
    this.credentials = credentials;
    if (this.events.auth === undefined) this.accept("sess_1");
    else this.events.auth(this, credentials);
  }
}

const carriedIn = (
  text: string,
  { sid, requestId, ...message }: MessageForRelay & { kind: "relay" | "packet" },
): CarriedPacket | null => {
  const packet = decodeForAgent(text);
  if (packet.kind !== "packet") return null;
  const { enveloped } = packet.form;
  const agentId = message.kind === "relay" ? message.agentId : null;
  return { text: packet.text, sid, enveloped, agentId, requestId };
};
