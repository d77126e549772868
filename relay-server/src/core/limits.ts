/**
 * What a relay's operator may change, and the local tuning behind it. The numbers of the contract
 * come from `@blindrelay/protocol`; each of the others says why it is what it is.
 */
import {
  MAX_MESSAGE_BYTES,
  OUTBOX_BYTES,
  RATE_BURST,
  RATE_PER_SECOND,
  SESSION_MAX_REQUESTS,
} from "@blindrelay/protocol";

/**
 * A site of thousands of devices behind one address comes back at once, and waits for a slow store.
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

/** How often the edge calls `hub.tick`, and so how late a deadline may be. */
export const TICK_MS = 100;

/** Messages that a connection may send while the hub waits for a look-up. A paused socket holds one
 * read of 64 KiB more, which this covers several times. */
export const HELD_BYTES = 262_144;
/** Charged for a held message on top of its bytes, so that a flood of tiny ones is bounded too. */
export const HELD_OVERHEAD_BYTES = 64;

/** Request ids remembered per connection; 68 a second for the whole 60 s. */
export const MAX_REQUEST_IDS_PER_CONNECTION = 4096;

/** OwnerCache of agents remembered; 10,000 agents offline at once cost no look-up. */
export const MAX_KNOWN_OWNERS = 65_536;

/**
 * `agent_status` per tick in a snapshot: 320 a second, so that 10,000 agents take half a minute.
 */
export const SNAPSHOT_BATCH = 32;

/** Counts of requests reach the store this often; a crash forgets at most so much. */
export const SAVE_REQUESTS_MS = 5000;
/** A session's count stays in memory this long after its last connection: a save is under way. */
export const KEEP_SESSION_MS = 60_000;

/** Connections ended per tick of a drain: closing 10,000 in one tick blocks the loop for long. */
export const DRAIN_BATCH = 200;
/** The pace at which drained peers are told to come back. */
export const RECONNECTS_PER_SECOND = 500;
/** Peers come back within at least this many seconds, however few they are. */
export const MIN_RECONNECT_WINDOW_S = 5;
