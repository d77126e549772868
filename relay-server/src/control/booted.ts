/**
 * What a device's logins say about the releases that it was offered: it has booted one, or it has
 * left one that it had booted for an older version, as a watchdog's fallback does. A release that
 * boots and then fails looks perfect by its first logins, so a staged rollout ends by the second.
 */
import { isAbove } from "@blindrelay/protocol/releases";
import { lastVersion } from "../store/agents.ts";
import { noteAct } from "../store/audit.ts";
import type { Db } from "../store/open.ts";
import {
  changeRelease,
  confirmOffers,
  findRelease,
  leaveOffers,
  rolloutCounts,
} from "../store/releases.ts";

/** A rollout is paused once more than one in this many devices that booted a release left it. */
const STOP_AT_ONE_IN = 20;

/** Before the agent's row gets the last of `versions`, those of its logins in their order. */
export const noteVersions = async (
  tx: Db,
  agentId: string,
  versions: readonly string[],
  atMs: number,
): Promise<void> => {
  let before = await lastVersion(tx, agentId);
  for (const version of versions) {
    await confirmOffers(tx, { agentId, version, nowMs: atMs });
    if (before !== null && isAbove(before, version)) {
      for (const id of await leaveOffers(tx, agentId, before, atMs))
        await stopRollout(tx, id, atMs);
    }
    before = version;
  }
};

/** Pauses a staged rollout that too many devices have left. */
const stopRollout = async (tx: Db, id: string, atMs: number): Promise<void> => {
  const release = await findRelease(tx, id);
  if (release?.status !== "published" || release.percent === 100 || release.paused === 1) return;
  const { confirmed = 0, left = 0 } = (await rolloutCounts(tx, [id])).get(id) ?? {};
  if (left * STOP_AT_ONE_IN <= confirmed) return;
  await changeRelease(tx, id, "published", { paused: 1 });
  const { runtime, channel, version, percent } = release;
  await noteAct(tx, atMs, {
    actorId: null,
    action: "release.rollout",
    subject: id,
    detail: { runtime, channel, version, percent, paused: true, left, confirmed },
  });
};
