/** Deletes what has been kept for long enough, and what exceeds an owner's bound (bounds.ts). */
import { forgetKeys } from "./access-keys.ts";
import { forgetActs } from "./audit.ts";
import { BOUNDS } from "./bounds.ts";
import { forgetIdempotent } from "./idempotency.ts";
import { forgetAddresses } from "./known-addresses.ts";
import { forgetNotices, trimNoticesOfUsers } from "./notices.ts";
import type { Db } from "./open.ts";
import { forgetSessions, trimSessionsOfUsers } from "./sessions.ts";
import { forgetTokens, trimTokensOfUsers } from "./tokens.ts";
import { forgetUploads } from "./uploads.ts";

/** How often to apply it: the rows of that time come on top of the bounds. */
export const RETENTION_EVERY_MS = 600_000;

export const applyRetention = async (db: Db, nowMs: number): Promise<void> => {
  const { access_keys, tokens, sessions, idempotency } = BOUNDS;
  const { uploads, audit, notices, known_addresses } = BOUNDS;
  await forgetKeys(db, nowMs - (access_keys.keptMs ?? 0));
  await forgetTokens(db, nowMs - tokens.keptMs);
  await trimTokensOfUsers(db, nowMs, tokens.perOwner);
  await forgetIdempotent(db, nowMs - idempotency.keptMs);
  await forgetUploads(db, nowMs - uploads.keptMs);
  await forgetSessions(db, nowMs - sessions.keptMs);
  await trimSessionsOfUsers(db, nowMs, sessions.perOwner);
  await forgetNotices(db, nowMs - notices.keptMs);
  await trimNoticesOfUsers(db, nowMs, notices.perOwner);
  await forgetActs(db, nowMs - audit.keptMs, audit.perOwner);
  await forgetAddresses(db, nowMs - known_addresses.keptMs);
};
