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
import type { Origin, RemotePresence } from "../bus.ts";
import type { Gauges } from "../gauges.ts";
import type { HubLimits } from "../limits/limits.ts";
import { RateBucket } from "../limits/rate-limit.ts";
import type { SessionUse } from "../limits/request-counts.ts";
import { UserShare } from "../limits/user-share.ts";
import type { AgentReport, ClientType, HubLink } from "../link.ts";
import type { AccessKey, View } from "./access-key.ts";
import { Bindings } from "./bindings.ts";
import type { Leaving } from "./leaving.ts";
import type { Waiting } from "./timer-wheel.ts";

type ConnectionState = "awaitingAuth" | "authenticating" | "online" | "closing";
type ConnectionEvent = "auth" | "accepted" | "refused" | "end";

const NEXT: {
  readonly [S in ConnectionState]: { readonly [E in ConnectionEvent]?: ConnectionState };
} = {
  awaitingAuth: { auth: "authenticating", end: "closing" },
  authenticating: { accepted: "online", refused: "awaitingAuth", end: "closing" },
  online: { end: "closing" },
  closing: {},
};

/**
 * The content of a message: its text; a function that reads it from the frame, called when the
 * message has its turn (null: it is not UTF-8); the packet that was scanned in it (scan.ts); or
 * null, if it is binary, and possibly if it is over the limit.
 */
export type Content = string | ((frame: Uint8Array) => string | null) | PacketHead | null;

/** A message that waits for its turn, or for the look-up of an earlier one of its connection. */
export interface HeldMessage {
  content: Content;
  frame: Uint8Array;
}

/** A valid envelope of a client always names its agent. */
export type ClientEnvelope = Envelope & { agentId: string };

/** The hub owns its fields; the owner of the socket only keeps the object and passes it in. */
export class Connection implements Waiting {
  readonly link: HubLink;
  /** The peer's address, for the lockout; behind a trusted proxy, the one that the proxy saw. */
  readonly address: string;
  readonly rate: RateBucket;

  state: ConnectionState = "awaitingAuth";
  /** The authenticated peer, once online. */
  peer: Peer | null = null;

  readonly authDeadline: number;
  authFailures = 0;
  unreadableInARow = 0;
  /** A bucket emptied by messages over the rate; null before the first. */
  patience: RateBucket | null = null;

  /** Kept by the timer wheel (`timer-wheel.ts`). */
  wakeAt: number | null = null;
  wakeSlot = 0;
  wakePlace = 0;
  nextPingAt = 0;
  pingsUnanswered = 0;

  /** Messages that wait for a look-up or for the user's next turn; null while none has to wait. */
  held: HeldMessage[] | null = null;
  heldBytes = 0;
  /** The share that they are charged to. */
  heldBy: UserShare<Connection> | null = null;
  paused = false;
  /** It is gone, or its peer is; it ends after the turn of the last message that waits. */
  isGoing = false;
  /** The client's envelope for which an agent is being looked up. */
  unrouted: { client: ClientPeer; envelope: ClientEnvelope; frame: Uint8Array } | null = null;
  /** The client's message that waits until requests are reserved in the store. */
  uncounted: { client: LocalClient; message: Envelope | PacketHead; frame: Uint8Array } | null =
    null;
  /** From `Revocations.mark`, taken when the current look-up began. */
  askedAt = 0;
  /** The same from `Views.mark`. */
  viewsAskedAt = 0;
  /** The members of its `auth` except the credentials. */
  clientType: ClientType = "client";
  wantsPresence = false;
  report: AgentReport | null = null;

  /** Kept by the outbox: since when messages have not fitted, and the length of the last one. */
  overSince: number | null = null;
  refusedBytes = 0;

  /** Set for an agent that was asked to connect to another node; null: it stays. */
  leaving: Leaving | null = null;

  /** How other nodes know this client; null until it sends to an agent on another node. */
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
  /** The session token that it renews, as a hash. */
  readonly renews: string | undefined;
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
  /** The access key that it came in with. */
  readonly key: Pick<AccessKey, "id"> | null;
  /** Null: it sees all agents of its account. */
  readonly view: View | null;
}

/** A client of another node that calls agents of this one (guests.ts). */
export interface Guest extends AnyClient {
  readonly session: null;
  readonly origin: Origin;
  /** Its own node decides what it sees. */
  readonly view: null;
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
  /** Orders its logins over all nodes: the highest one has the place. 0 if there is one node. */
  readonly loginNumber: number;
  /** When it came online; a takeover does not change that. */
  readonly onlineSince: number;
  /** Recent takeovers of this agent; passed on from connection to connection. */
  readonly takeovers: readonly number[];
}

export type Peer = ClientPeer | AgentPeer;

/** Whether a client came in with an access key, here or on its own node. */
export const isKeyed = (client: ClientPeer): boolean =>
  client.origin === null ? client.key !== null : client.origin.isKeyed;

/** What a peer's messages and its queue are charged to. */
export const shareOf = (peer: Peer): UserShare<Connection> =>
  peer.role === "client" && isKeyed(peer) ? peer.user.keyShare : peer.user.share;

export class User {
  readonly id: string;
  readonly clients = new Set<LocalClient>();
  /** Present while the user has agents here. */
  readonly guests = new Set<Guest>();
  readonly agents = new Map<string, AgentPeer>();
  readonly bindings: Bindings<ClientPeer>;
  readonly share = new UserShare<Connection>();
  /** Of the clients with access keys: whoever has one must not hold up the account. */
  readonly keyShare = new UserShare<Connection>();
  /** Agents on other nodes, while the user has clients here (remote-agents.ts). */
  readonly abroad = new Map<string, RemotePresence>();

  constructor(id: string, gauges: Gauges) {
    this.id = id;
    this.bindings = new Bindings<ClientPeer>(gauges, shareOf);
  }
}
