/**
 * What is deleted from the store, and when (docs/operations.md, "Retention"): the store stays
 * bounded, whatever users and devices do.
 */
import { IDEMPOTENCY_TTL_S, RETIRED_TOKEN_KEPT_S } from "@blindrelay/protocol";
import { forgetActs } from "./audit.ts";
import { forgetIdempotent } from "./idempotency.ts";
import { forgetNotices } from "./notices.ts";
import type { Db } from "./open.ts";
import { forgetSessions } from "./sessions.ts";
import { forgetTokens } from "./tokens.ts";
import { forgetUploads } from "./uploads.ts";

const DAY_MS = 86_400_000;
/** No upload takes that long; an older one without a release was left by a crash. */
const UPLOAD_KEPT_MS = DAY_MS;
/** A month more than a year, so that a yearly audit may be late. */
export const AUDIT_KEPT_MS = 400 * DAY_MS;
/** Per actor, so that nobody can displace the entries of others; about 3 MB. */
export const AUDIT_KEPT_PER_ACTOR = 10_000;

/** Deletes what has been kept long enough. */
export const applyRetention = async (db: Db, nowMs: number): Promise<void> => {
  const before = nowMs - RETIRED_TOKEN_KEPT_S * 1000;
  await forgetTokens(db, before);
  await forgetIdempotent(db, nowMs - IDEMPOTENCY_TTL_S * 1000);
  await forgetUploads(db, nowMs - UPLOAD_KEPT_MS);
  await forgetSessions(db, before);
  await forgetNotices(db, nowMs - DAY_MS);
  await forgetActs(db, nowMs - AUDIT_KEPT_MS, AUDIT_KEPT_PER_ACTOR);
};
