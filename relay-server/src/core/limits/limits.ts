/**
 * What a relay's operator may change, and local tuning. The constants of the contract come from
 * `@blindrelay/protocol`; every other number has its reason here.
 */
import {
  MAX_MESSAGE_BYTES,
  OUTBOX_BYTES,
  RATE_BURST,
  RATE_PER_SECOND,
  SESSION_MAX_REQUESTS,
} from "@blindrelay/protocol";

/**
 * Thousands of devices behind one address reconnect at once, and wait for a slow store.
 */
export const WAITING_PER_ADDRESS = 1024;

/** A person's browsers, scripts and services; each may fill its queue and use its rate. */
export const CLIENTS_PER_USER = 1000;

export interface HubLimits {
  maxMessageBytes: number;
  /** Bytes that may wait for one connection before messages to it are dropped. */
  outboxBytes: number;
  ratePerSecond: number;
  rateBurst: number;
  /** Connections of one address (IPv6: /64) that have not authenticated. */
  waitingPerAddress: number;
  /** Connections of one user's clients, and as many with the user's access keys. */
  clientsPerUser: number;
  /** Requests of one client session token. */
  maxRequests: number;
}

export const DEFAULT_LIMITS: HubLimits = {
  maxMessageBytes: MAX_MESSAGE_BYTES,
  outboxBytes: OUTBOX_BYTES,
  ratePerSecond: RATE_PER_SECOND,
  rateBurst: RATE_BURST,
  waitingPerAddress: WAITING_PER_ADDRESS,
  clientsPerUser: CLIENTS_PER_USER,
  maxRequests: SESSION_MAX_REQUESTS,
};

/**
 * Bytes that may wait for all connections of a user together before messages to those with more
 * than a short queue are dropped; at twice as much, all messages are dropped.
 */
export const QUEUED_BYTES_PER_USER = 33_554_432;
/**
 * The queue that a slow but reading link may always have, so that a few stuck links of its user do
 * not stop it: as much as one message of the usual limit, which a connection without a queue gets
 * anyway.
 */
export const SHORT_QUEUE_BYTES = 65_536;
/** A user's queues are counted again after this many bytes; until then everything sent counts. */
export const RECOUNT_BYTES = 1_048_576;

/** How often the edge calls `hub.tick`, and so how late a deadline may fire. */
export const TICK_MS = 100;

/** Messages that a connection may send while the hub waits for a look-up. A paused socket holds one
 * read of 64 KiB more, which this covers several times. */
export const HELD_BYTES = 262_144;
/**
 * The same over all connections of a user, who may have a thousand, and over all unauthenticated
 * ones. Beyond half of it their links are paused at once.
 */
export const HELD_BYTES_PER_USER = 16_777_216;
/**
 * Always available to each connection: an `auth` that waits for its turn is not refused because of
 * others.
 */
export const FREE_HELD_BYTES = 1024;
/** Charged for a held message on top of its bytes, so that a flood of tiny ones is bounded too. */
export const HELD_OVERHEAD_BYTES = 64;

/**
 * Of these, how many may wait for the next turn before the link is paused. A turn comes soon, and
 * stopping and starting a socket costs as much as forwarding a message.
 */
export const UNPAUSED_BYTES = 65_536;

/**
 * Work for one user in one turn of the event loop, in messages: half a millisecond. Smaller turns
 * cost more system calls, larger ones delay all other connections.
 */
export const TURN_COST = 32;
/**
 * The same while no other user is active: a few milliseconds, which a newcomer may have to wait.
 */
export const ALONE_TURN_COST = 512;
/** The same for all unauthenticated connections together: their logins share one commit. */
export const UNAUTHENTICATED_TURN_COST = 128;
/** A user counts as alone after this many turns without a message from anybody else. */
export const ALONE_AFTER_TURNS = 256;
/** This many bytes of a message cost as much as another message. */
export const BYTES_PER_COST = 1024;
/**
 * What a look-up in the store costs, in messages. A login costs the same, because its writes share
 * one commit with others'; at a higher cost too few would come together for that.
 */
export const LOOK_UP_COST = 4;

/** Request ids remembered per connection: 68 a second for the whole 60 s. */
export const MAX_REQUEST_IDS_PER_CONNECTION = 4096;

/**
 * Bindings of all connections of a user, of which there may be a thousand, and the same number of
 * request ids: 40 MB each. As many with the user's access keys. A connection may still have the
 * number below when others of its share use all of these.
 */
export const MAX_BINDINGS_PER_USER = 131_072;
export const MAX_REQUEST_IDS_PER_USER = 131_072;
export const FREE_PER_CONNECTION = 64;

/** Owners of agents remembered; 10,000 agents that are offline at once cost no look-up. */
export const MAX_KNOWN_OWNERS = 65_536;

/** `agent_status` messages about a user's agents per turn: half a millisecond of socket writes. */
export const NEWS_PER_TURN = 32;
/** Of all users, until the next turn or tick: even for one client a fraction of its queue. */
export const NEWS_AT_ONCE = 1024;
/**
 * Changes of a user's agents that are queued individually; beyond it only the newest of each agent.
 */
export const NEWS_KEPT = 256;
/** The store learns within a second, on an idle machine, that an agent has left its node. */
export const GONE_KEPT_MS = 5000;

/**
 * `agent_status` messages per tick in a snapshot: 320 a second, so that 10,000 agents take half a
 * minute.
 */
export const SNAPSHOT_BATCH = 32;
/**
 * Snapshots of one user at a time: each lists all online agents, and is written to another socket.
 */
export const SNAPSHOTS_AT_ONCE = 16;

/** How often counts of requests are saved to the store; a crash loses at most that. */
export const SAVE_REQUESTS_MS = 5000;
/**
 * How long a session's count stays in memory after its last connection: a save may be in progress.
 */
export const KEEP_SESSION_MS = 60_000;

/**
 * Connections ended per tick of a drain: closing 10,000 in one tick blocks the loop for too long.
 */
export const DRAIN_BATCH = 200;
/** Notifying a peer costs less than closing its link: within this many ticks all are notified. */
export const DRAIN_TICKS = 20;
/** The rate at which drained peers should reconnect. */
export const RECONNECTS_PER_SECOND = 500;
/**
 * The same for a node whose time is short: its peers keep their link until they have another one,
 * and so lose nothing by reconnecting later. Concurrent logins slow each other down.
 */
export const MOVES_PER_SECOND = 100;
/**
 * The time over which they are spread: less than a tenth of them in a second. Many peers move at a
 * higher rate than the above, because the process must end in time.
 */
export const MOVE_WINDOW_S = 11;
/**
 * How long a link stays open after the moment at which its peer should connect elsewhere: enough
 * for a few attempts, and for as many while all nodes are busy with thousands of arriving peers. A
 * board, which waits for the end of its link, loses nothing by it.
 */
export const MIN_HELD_LINK_MS = 4000;
export const MAX_HELD_LINK_MS = 10_000;
/** The same if the process would otherwise end before that: for one attempt. */
export const HURRIED_LINK_MS = 2000;
/**
 * How long a board may then take to answer what was forwarded to it; its callers wait as long, plus
 * the time until its next link.
 */
export const ANSWERS_MS = 2000;
/**
 * Drained peers reconnect over at least this many seconds, however few they are, and however little
 * time a node has left.
 */
export const MIN_RECONNECT_WINDOW_S = 5;
