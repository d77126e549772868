/**
 * Decides which release a device is offered: the highest one above its own whose rollout has
 * reached it.
 */
import { createHash } from "node:crypto";
import { isVersionText } from "@blindrelay/protocol/releases";
import { gt, rcompare, valid } from "semver";
import type { ReleaseRow } from "../store/tables.ts";

const BUCKETS = 10_000;

/** Whether a text is a version that can be compared: by SemVer, and without a number over 2^53. */
export const isOrderable = (text: string): boolean => isVersionText(text) && valid(text) !== null;

/**
 * The release to offer, or null. `agentId` null: a user asks; users see every published
 * release, whatever its rollout.
 */
export const releaseFor = (
  published: readonly ReleaseRow[],
  current: string,
  agentId: string | null,
): ReleaseRow | null =>
  published
    .filter(({ version }) => gt(version, current))
    .filter((release) => agentId === null || reaches(release, agentId))
    .sort((a, b) => rcompare(a.version, b.version))[0] ?? null;

/**
 * Whether a rollout has come to a device. Its place is drawn from release and device together: the
 * same at every check, and not the same devices first with every release.
 */
export const reaches = (
  release: Pick<ReleaseRow, "id" | "percent" | "paused">,
  agentId: string,
): boolean => {
  if (release.paused === 1) return false;
  const hash = createHash("sha256").update(`${release.id}|${agentId}`).digest();
  return hash.readUInt32BE(0) % BUCKETS < (release.percent * BUCKETS) / 100;
};
