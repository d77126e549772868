/**
 * What one user may keep and ask for (docs/operations.md). All of it is worked on by the thread
 * that forwards messages, so what one user may use bounds how long the others wait.
 */

import { agentBytes, agentCount } from "../store/agents.ts";
import type { Db } from "../store/open.ts";

/** 50 a second, all at once too: a script that makes a thousand agents is not stopped. */
export const REQUESTS_PER_MINUTE = 3000;
/**
 * A site of people behind one address who read the documentation; logins have limits of their own.
 */
export const ANONYMOUS_REQUESTS_PER_MINUTE = 1200;
/**
 * Enough for one user's writes to share a sync of the disk; others wait for so many at the most.
 */
export const REQUESTS_AT_ONCE = 4;
export const AGENTS_PER_USER = 10_000;
/** 8 KiB is the most of one agent, and few have a fraction of it. */
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

/** A user has as much as the quota allows; the message says of what. */
export class QuotaExceeded extends Error {}

/** Throws where one more agent would be too many. Call it inside the transaction that adds it. */
export const holdAgents = async (db: Db, userId: string, { agentsPerUser }: Quotas) => {
  if ((await agentCount(db, userId, agentsPerUser)) >= agentsPerUser) {
    throw new QuotaExceeded(`An account has at most ${agentsPerUser} agents on this relay.`);
  }
};

/** `{}`, which most agents have: not worth a look. */
const EMPTY_METADATA_BYTES = 2;

/** Throws where metadata of so many bytes, instead of an agent's own, would be too many. */
export const holdMetadata = async (
  db: Db,
  userId: string,
  agentId: string,
  bytes: number,
  { metadataBytesPerUser }: Quotas,
) => {
  if (bytes <= EMPTY_METADATA_BYTES) return;
  if ((await agentBytes(db, userId, agentId)) + bytes > metadataBytesPerUser) {
    throw new QuotaExceeded(
      `The metadata of an account's agents have at most ${metadataBytesPerUser} bytes on this relay.`,
    );
  }
};
