/**
 * What a relay's operator may change, and the local tuning behind it. The constants of the contract
 * come from `@blindrelay/protocol`; every other number has its reason here.
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
  /** Connections of one user's clients. */
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
 * Bytes that may wait for all connections of a user together before messages to those of them that
 * have more than a short queue are dropped; at twice as much, all messages are.
 */
export const QUEUED_BYTES_PER_USER = 33_554_432;
/**
 * What a link that is slow but reads has to have, so that a few stuck links of its user do not stop
 * it: as much as one message of the usual limit, which a connection without a queue gets anyway.
 */
export const SHORT_QUEUE_BYTES = 65_536;

/** How often the edge calls `hub.tick`, and so how late a deadline may be. */
export const TICK_MS = 100;

/** Messages that a connection may send while the hub waits for a look-up. A paused socket holds one
 * read of 64 KiB more, which this covers several times. */
export const HELD_BYTES = 262_144;
/**
 * The same over all connections of a user, who may have a thousand; and over all that have not
 * authenticated. Beyond half of it their links are paused at once.
 */
export const HELD_BYTES_PER_USER = 16_777_216;
/** Whatever others hold: an `auth` that waits for its turn is not refused because of them. */
export const FREE_HELD_BYTES = 1024;
/** Charged for a held message on top of its bytes, so that a flood of tiny ones is bounded too. */
export const HELD_OVERHEAD_BYTES = 64;

/**
 * Of these, how many may wait for the next turn before the link is asked to read no more. A turn
 * comes soon, and a socket that stops and starts costs as much as forwarding a message.
 */
export const UNPAUSED_BYTES = 65_536;

/**
 * Work for one user in one turn of the event loop, in messages: half a millisecond. Smaller turns
 * cost more system calls, larger ones delay all other connections.
 */
export const TURN_COST = 32;
/** The same while nobody else is at work: a few milliseconds, which a newcomer may have to wait. */
export const ALONE_TURN_COST = 512;
/**
 * The same for all who have not authenticated, together: what their logins write is written in one
 * commit.
 */
export const UNAUTHENTICATED_TURN_COST = 128;
/** Nobody else is, when nobody else sent anything in so many turns. */
export const ALONE_AFTER_TURNS = 256;
/** Bytes of a message that cost as much as one message more. */
export const BYTES_PER_COST = 1024;
/**
 * What a look-up in the store costs, in messages. A login costs as much here: what it writes is
 * written with others' in one commit, and with dearer look-ups too few would come together for it.
 */
export const LOOK_UP_COST = 4;

/** Request ids remembered per connection; 68 a second for the whole 60 s. */
export const MAX_REQUEST_IDS_PER_CONNECTION = 4096;

/**
 * Bindings of all connections of a user, of which there may be a thousand, and the same of request
 * ids: 40 MB each. A connection may still have so many when others of its user have all of these.
 */
export const MAX_BINDINGS_PER_USER = 131_072;
export const MAX_REQUEST_IDS_PER_USER = 131_072;
export const FREE_PER_CONNECTION = 64;

/** Owners of agents remembered; 10,000 agents offline at once cost no look-up. */
export const MAX_KNOWN_OWNERS = 65_536;

/** `agent_status` of a user's agents that come and go: half a millisecond of writing to sockets. */
export const NEWS_PER_TURN = 32;
/** Of these, how many of a user wait as they are; beyond it only the newest of each agent. */
export const NEWS_KEPT = 256;

/**
 * `agent_status` per tick in a snapshot: 320 a second, so that 10,000 agents take half a minute.
 */
export const SNAPSHOT_BATCH = 32;
/** Of one user at a time: each lists all agents online, and is written to another socket. */
export const SNAPSHOTS_AT_ONCE = 16;

/** Counts of requests reach the store this often; a crash loses at most that. */
export const SAVE_REQUESTS_MS = 5000;
/** A session's count stays in memory this long after its last connection: a save is in progress. */
export const KEEP_SESSION_MS = 60_000;

/** Connections ended per tick of a drain: closing 10,000 in one tick blocks the loop for long. */
export const DRAIN_BATCH = 200;
/** Telling a peer costs less than closing its link, and within so many ticks all are told. */
export const DRAIN_TICKS = 20;
/** The rate at which drained peers are to reconnect. */
export const RECONNECTS_PER_SECOND = 500;
/**
 * The same for peers that keep their link until they have another one, and so lose nothing by
 * coming later: every login is held up a little by concurrent ones.
 */
export const MOVES_PER_SECOND = 100;
/** They come faster where there are many: the process is to end in time. */
export const MAX_MOVE_WINDOW_S = 12;
/**
 * How long a link outlives the moment at which its peer was told to connect elsewhere: a few tries,
 * also where all nodes are busy with those that come. A board, which waits for the end of its link,
 * loses nothing by it.
 */
export const HELD_LINK_MS = 10_000;
/**
 * How long a board may then take to answer what was forwarded to it; its callers wait as long, and
 * for its next link.
 */
export const ANSWERS_MS = 2000;
/** Drained peers reconnect over at least this many seconds, however few they are. */
export const MIN_RECONNECT_WINDOW_S = 5;
