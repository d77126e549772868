/**
 * What one user may store and request (docs/limits.md). The thread that forwards messages does
 * all of this work, so the quotas bound how long other users wait.
 */

/** 50 a second, or all at once: a script that creates a thousand agents is not stopped. */
export const REQUESTS_PER_MINUTE = 3000;
/**
 * Enough for the people at one site, behind one address, to read the documentation; logins have
 * their own limits.
 */
export const ANONYMOUS_REQUESTS_PER_MINUTE = 1200;
/** Enough for one user's writes to share a disk sync; others wait for at most this many. */
export const REQUESTS_AT_ONCE = 4;
export const AGENTS_PER_USER = 10_000;
/** One agent has at most 8 KiB, and most have a fraction of that. */
export const METADATA_BYTES_PER_USER = 33_554_432;

export interface Quotas {
  readonly requestsPerMinute: number;
  readonly anonymousRequestsPerMinute: number;
  readonly requestsAtOnce: number;
  readonly agentsPerUser: number;
  readonly metadataBytesPerUser: number;
}

export const DEFAULT_QUOTAS: Quotas = {
  requestsPerMinute: REQUESTS_PER_MINUTE,
  anonymousRequestsPerMinute: ANONYMOUS_REQUESTS_PER_MINUTE,
  requestsAtOnce: REQUESTS_AT_ONCE,
  agentsPerUser: AGENTS_PER_USER,
  metadataBytesPerUser: METADATA_BYTES_PER_USER,
};

/** A user has reached a quota; the message says which. */
export class QuotaExceeded extends Error {}
