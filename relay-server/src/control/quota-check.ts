/** The quotas that need the store; the numbers are in quotas.ts, which `--help` also loads. */
import { heldBy } from "../store/agents.ts";
import type { Db } from "../store/open.ts";
import { QuotaExceeded, type Quotas } from "./quotas.ts";

/** `{}`, which most agents have, is always allowed. */
const EMPTY_METADATA_BYTES = 2;

/**
 * Throws if one more agent, or a change of an agent's metadata from `insteadOf` to `bytes` bytes,
 * exceeds a quota. Call it inside the transaction that makes the change.
 */
export const holdQuotas = async (
  db: Db,
  userId: string,
  { agentsPerUser, metadataBytesPerUser }: Quotas,
  add: { readonly agents: number; readonly bytes: number; readonly insteadOf: number },
): Promise<void> => {
  const held = await heldBy(db, userId);
  if (add.agents > 0 && held.agents_held + add.agents > agentsPerUser) {
    throw new QuotaExceeded(`An account has at most ${agentsPerUser} agents on this relay.`);
  }
  const bytes = held.metadata_bytes + add.bytes - add.insteadOf;
  if (add.bytes > EMPTY_METADATA_BYTES && bytes > metadataBytesPerUser) {
    throw new QuotaExceeded(
      `The metadata of an account's agents have at most ${metadataBytesPerUser} bytes on this relay.`,
    );
  }
};
