/** The quotas that look into the store; the numbers are in quotas.ts, which `--help` loads too. */

import { agentBytes, agentCount } from "../store/agents.ts";
import type { Db } from "../store/open.ts";
import { QuotaExceeded, type Quotas } from "./quotas.ts";

/** Throws if one more agent would be too many. Call it inside the transaction that adds it. */
export const holdAgents = async (db: Db, userId: string, { agentsPerUser }: Quotas) => {
  if ((await agentCount(db, userId, agentsPerUser)) >= agentsPerUser) {
    throw new QuotaExceeded(`An account has at most ${agentsPerUser} agents on this relay.`);
  }
};

/** `{}`, which most agents have: not worth a look. */
const EMPTY_METADATA_BYTES = 2;

/** Throws if metadata of so many bytes, instead of an agent's own, would be too many. */
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
