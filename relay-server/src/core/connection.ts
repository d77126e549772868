/**
 * One connection to `/wss` and the states of its life (section 3):
 *
 *     awaitingAuth --auth--> authenticating --accepted--> online
 *           ^                      |                         |
 *           +-------refused--------+                         |
 *     any of them ------------------end------------------> closing
 *
 * `closing` is final: the hub has forgotten the connection, and only its socket still has to go.
 */
import { AUTH_TIMEOUT_MS, MAX_RATE_REFUSALS } from "@blindrelay/protocol";
import type { Envelope } from "@blindrelay/protocol/wire";
import { Bindings } from "./bindings.ts";
import type { HubLimits } from "./limits.ts";
import type { AgentReport, ClientType, HubLink } from "./link.ts";
import { RateBucket } from "./rate-limit.ts";
import type { SessionUse } from "./sessions.ts";
import type { Waiting } from "./timer-wheel.ts";

export type ConnectionState = "awaitingAuth" | "authenticating" | "online" | "closing";
export type ConnectionEvent = "auth" | "accepted" | "refused" | "end";

const NEXT: {
  readonly [S in ConnectionState]: { readonly [E in ConnectionEvent]?: ConnectionState };
} = {
  awaitingAuth: { auth: "authenticating", end: "closing" },
  authenticating: { accepted: "online", refused: "awaitingAuth", end: "closing" },
  online: { end: "closing" },
  closing: {},
};

/** A message that waits until a look-up for an earlier one of its connection is answered. */
export interface HeldMessage {
  text: string | null;
  frame: Uint8Array;
}

/** A client's envelope without fault always names its agent. */
export type ClientEnvelope = Envelope & { agentId: string };

/** Its fields belong to the hub; whoever owns the socket only keeps the object and hands it in. */
export class Connection implements Waiting {
  readonly link: HubLink;
  /** Of the peer, for the lockout; behind a trusted proxy the address that proxy saw. */
  readonly address: string;
  readonly rate: RateBucket;

  state: ConnectionState = "awaitingAuth";
  /** Who this is, once online. */
  peer: Peer | null = null;

  readonly authDeadline: number;
  authFailures = 0;
  unreadableInARow = 0;
  /** Messages that were over the rate, as a bucket that such messages empty. */
  readonly patience: RateBucket;

  /** The wheel's. */
  wakeAt: number | null = null;
  wakeSlot = 0;
  nextPingAt = 0;
  pingsUnanswered = 0;

  /** Messages behind a look-up; null while there is none under way. */
  held: HeldMessage[] | null = null;
  heldBytes = 0;
  paused = false;
  /** The client's envelope whose agent is being looked up. */
  unrouted: { envelope: ClientEnvelope; frame: Uint8Array } | null = null;
  /** From `Revocations.mark`, taken when the look-up under way began. */
  askedAt = 0;
  /** What its `auth` said beside the credentials. */
  clientType: ClientType = "client";
  wantsPresence = false;
  report: AgentReport | null = null;

  /** The outbox's: since when a message did not fit, and how long that message was. */
  overSince: number | null = null;
  refusedBytes = 0;

  constructor(link: HubLink, address: string, limits: HubLimits, now: number) {
    this.link = link;
    this.address = address;
    this.rate = new RateBucket(limits.rateBurst, now);
    this.patience = new RateBucket(MAX_RATE_REFUSALS, now);
    this.authDeadline = now + AUTH_TIMEOUT_MS;
  }
}

/** Moves a connection along the table. Throws where the table has no such step: a fault of ours. */
export const advance = (connection: Connection, event: ConnectionEvent): void => {
  const next = NEXT[connection.state][event];
  if (next === undefined) {
    throw new Error(`no step from ${connection.state} on ${event}`);
  }
  connection.state = next;
};

export interface ClientPeer {
  readonly role: "client";
  readonly clientType: ClientType;
  readonly connection: Connection;
  readonly userId: string;
  readonly user: User;
  readonly sessionHash: string;
  readonly session: SessionUse;
  /** First parts of sids bound to this connection, least recently used first. */
  readonly bound: Set<string>;
  /** Keys in `RequestIds`, oldest first. */
  readonly requests: Set<string>;
}

export interface AgentPeer {
  readonly role: "agent";
  readonly clientType: ClientType;
  readonly connection: Connection;
  readonly userId: string;
  readonly user: User;
  readonly sessionHash: string;
  readonly agentId: string;
  /** When it came online; a takeover does not change that. */
  readonly onlineSince: number;
  /** When this agent was taken over lately; handed from connection to connection. */
  readonly takeovers: number[];
}

export type Peer = ClientPeer | AgentPeer;

export class User {
  readonly id: string;
  readonly clients = new Set<ClientPeer>();
  readonly agents = new Map<string, AgentPeer>();
  readonly bindings = new Bindings<ClientPeer>();

  constructor(id: string) {
    this.id = id;
  }
}
