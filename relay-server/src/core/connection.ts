/**
 * One connection to `/wss` and the states of its life (section 3):
 *
 *     awaitingAuth --auth--> authenticating --accepted--> online
 *           ^                      |                         |
 *           +-------refused--------+                         |
 *     any of them ------------------end------------------> closing
 *
 * `closing` is final: the hub has dropped the connection, and only its socket still has to close.
 */
import { AUTH_TIMEOUT_MS } from "@blindrelay/protocol";
import type { Envelope, PacketHead } from "@blindrelay/protocol/wire";
import { Bindings } from "./bindings.ts";
import type { Origin, RemotePresence } from "./bus.ts";
import type { Gauges } from "./gauges.ts";
import type { Leaving } from "./leaving.ts";
import type { HubLimits } from "./limits.ts";
import type { AgentReport, ClientType, HubLink } from "./link.ts";
import { RateBucket } from "./rate-limit.ts";
import type { SessionUse } from "./request-counts.ts";
import type { Waiting } from "./timer-wheel.ts";
import { UserShare } from "./user-share.ts";

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

/**
 * What a message says: its text; a function that reads it from the frame, called when the message
 * has its turn (null: it is not UTF-8); the packet that was scanned in it (scan.ts); or null, when
 * it is binary, and perhaps when it is over the limit.
 */
export type Content = string | ((frame: Uint8Array) => string | null) | PacketHead | null;

/** A message that waits for a look-up for an earlier one of its connection, or for its turn. */
export interface HeldMessage {
  content: Content;
  frame: Uint8Array;
}

/** A client's envelope without fault always names its agent. */
export type ClientEnvelope = Envelope & { agentId: string };

/** Its fields belong to the hub; the owner of the socket only keeps the object and passes it in. */
export class Connection implements Waiting {
  readonly link: HubLink;
  /** Of the peer, for the lockout; behind a trusted proxy the address that proxy saw. */
  readonly address: string;
  readonly rate: RateBucket;

  state: ConnectionState = "awaitingAuth";
  /** The authenticated peer, once online. */
  peer: Peer | null = null;

  readonly authDeadline: number;
  authFailures = 0;
  unreadableInARow = 0;
  /** Messages over the rate, as a bucket that they empty; null before the first. */
  patience: RateBucket | null = null;

  /** Kept by the timer wheel (`timer-wheel.ts`). */
  wakeAt: number | null = null;
  wakeSlot = 0;
  wakePlace = 0;
  nextPingAt = 0;
  pingsUnanswered = 0;

  /** Messages behind a look-up, or until the user's next turn; null while nothing has to wait. */
  held: HeldMessage[] | null = null;
  heldBytes = 0;
  /** Whose they are counted as. */
  heldBy: UserShare<Connection> | null = null;
  paused = false;
  /** The client's envelope whose agent is being looked up. */
  unrouted: { envelope: ClientEnvelope; frame: Uint8Array } | null = null;
  /** The client's message that waits until requests were reserved in the store. */
  uncounted: { message: Envelope | PacketHead; frame: Uint8Array } | null = null;
  /** From `Revocations.mark`, taken when the current look-up began. */
  askedAt = 0;
  /** The members of its `auth` other than the credentials. */
  clientType: ClientType = "client";
  wantsPresence = false;
  report: AgentReport | null = null;

  /** Kept by the outbox: since when messages have not fitted, and the last one's length. */
  overSince: number | null = null;
  refusedBytes = 0;

  /** Of an agent that was told to connect to another node; null: it stays. */
  leaving: Leaving | null = null;

  /** How other nodes know this client: null until it sends to an agent of one. */
  travel: { readonly number: number; readonly nodes: Set<string> } | null = null;

  constructor(link: HubLink, address: string, limits: HubLimits, now: number) {
    this.link = link;
    this.address = address;
    this.rate = new RateBucket(limits.rateBurst, now);
    this.authDeadline = now + AUTH_TIMEOUT_MS;
  }
}

/** Moves a connection along the table. Throws if the table has no such step, which is a bug. */
export const advance = (connection: Connection, event: ConnectionEvent): void => {
  const next = NEXT[connection.state][event];
  if (next === undefined) {
    throw new Error(`no step from ${connection.state} on ${event}`);
  }
  connection.state = next;
};

interface AnyClient {
  readonly role: "client";
  readonly clientType: ClientType;
  readonly connection: Connection;
  readonly userId: string;
  readonly user: User;
  readonly sessionHash: string;
  /** First parts of sids bound to this connection, least recently used first, and the last. */
  readonly bound: Set<string>;
  latest: string | null;
  /** Keys in `RequestIds`, oldest first. */
  readonly requests: Set<string>;
}

/** A client of this node. */
export interface LocalClient extends AnyClient {
  readonly session: SessionUse;
  readonly onlineSince: number;
  readonly origin: null;
}

/** A client of another node that calls agents of this one (guests.ts). */
export interface Guest extends AnyClient {
  readonly session: null;
  readonly origin: Origin;
}

export type ClientPeer = LocalClient | Guest;

export const isGuest = (peer: Peer | null): peer is Guest =>
  peer?.role === "client" && peer.origin !== null;

export interface AgentPeer {
  readonly role: "agent";
  readonly clientType: ClientType;
  readonly connection: Connection;
  readonly userId: string;
  readonly user: User;
  readonly sessionHash: string;
  readonly agentId: string;
  /** Of its login, over all nodes: the higher one has the place. 0 if there is one node. */
  readonly loginNumber: number;
  /** When it came online; a takeover does not change that. */
  readonly onlineSince: number;
  /** When this agent was taken over lately; handed from connection to connection. */
  readonly takeovers: readonly number[];
}

export type Peer = ClientPeer | AgentPeer;

export class User {
  readonly id: string;
  readonly clients = new Set<LocalClient>();
  /** While the user has agents here. */
  readonly guests = new Set<Guest>();
  readonly agents = new Map<string, AgentPeer>();
  readonly bindings: Bindings<ClientPeer>;
  /** Kept by `RequestIds`. */
  requestIds = 0;
  readonly share = new UserShare<Connection>();
  /** Agents of other nodes, while the user has clients here (remote-agents.ts). */
  readonly abroad = new Map<string, RemotePresence>();

  constructor(id: string, gauges: Gauges) {
    this.id = id;
    this.bindings = new Bindings(gauges);
  }
}
