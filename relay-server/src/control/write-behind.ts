/**
 * Writes what the hub leaves for the store (core/ports.ts, WriteBehind) once a second and in
 * groups: a fleet that reconnects at once would otherwise need a disk flush per device. What cannot
 * be written is kept and retried for as long as the store is unavailable. A killed process loses a
 * second of `last_seen` and of request counts, which are not guaranteed.
 */
import type { AgentReport } from "../core/link.ts";
import type { WriteBehind } from "../core/ports.ts";
import { isElsewhereSince, writeSighting } from "../store/agents.ts";
import type { Db, Store } from "../store/open.ts";
import { addRequestsUsed } from "../store/sessions.ts";
import { noteVersions } from "./booted.ts";

interface Sighting {
  readonly atMs: number;
  /** Its report at login, and when that was; null if it only disconnected. */
  readonly report: AgentReport | null;
  readonly reportedAtMs: number | null;
  /** Earlier versions that it logged in with since the last write, oldest first. */
  readonly before: readonly string[];
  readonly online: boolean;
}

/** A device that restarts more often between two writes is not followed further back. */
const MAX_VERSIONS = 8;

/** Entries in one transaction: other writes wait for at most this many. */
const MAX_TOGETHER = 200;

export interface StoreWriteBehind extends WriteBehind {
  /** Writes all pending entries; resolves when they, and those being written, are readable. */
  flush(): Promise<void>;
}

/** `node`: this node of a cluster; null if there is only one relay. */
export const storeWriteBehind = (store: Store, node: string | null = null): StoreWriteBehind => {
  /** Requests by session that are not in the store yet. */
  const used = new Map<string, number>();
  const seen = new Map<string, Sighting>();
  const addUsed = (hash: string, requests: number) => {
    used.set(hash, (used.get(hash) ?? 0) + requests);
  };
  /** `older`: what is known already; the newer one counts, and knows the versions of both. */
  const joined = (older: Sighting | undefined, newer: Sighting): Sighting => {
    if (older === undefined) return newer;
    const passed = older.report?.firmwareVersion ?? null;
    const isNew = newer.report !== null && passed !== null;
    const versions = [...older.before, ...(isNew ? [passed] : []), ...newer.before];
    return {
      ...newer,
      report: newer.report ?? older.report,
      reportedAtMs: newer.reportedAtMs ?? older.reportedAtMs,
      before: versions.slice(-MAX_VERSIONS),
    };
  };

  const writeCounts = async (): Promise<void> => {
    const counts = first(used);
    try {
      await store.write(async (tx) => {
        for (const [hash, requests] of counts) await addRequestsUsed(tx, { hash, requests });
      });
    } catch (error) {
      // A commit with a lost answer is counted twice: a token may end early, but never late.
      // Returned requests are not repeated, because a token must not last longer for that.
      for (const [hash, requests] of counts) if (requests > 0) addUsed(hash, requests);
      throw error;
    }
  };
  const writeOne = async (tx: Db, agentId: string, sighting: Sighting): Promise<void> => {
    const { atMs, report, reportedAtMs, online, before } = sighting;
    const place = node === null ? null : { node, online };
    // It came and left before this was written. The node that it went to may have been quicker:
    // the older report would undo the newer one, and look like a device's return to it.
    const wasQuick = place !== null && reportedAtMs !== null && !online;
    if (wasQuick && (await isElsewhereSince(tx, agentId, place.node, reportedAtMs))) {
      await writeSighting(tx, agentId, atMs, null);
      return;
    }
    const booted = report?.firmwareVersion ?? null;
    const versions = booted === null ? before : [...before, booted];
    if (versions.length > 0) await noteVersions(tx, agentId, versions, atMs);
    await writeSighting(tx, agentId, atMs, report, place);
  };
  const writeSightings = async (): Promise<void> => {
    const sightings = first(seen);
    try {
      await store.write(async (tx) => {
        for (const [agentId, sighting] of sightings) await writeOne(tx, agentId, sighting);
      });
    } catch (error) {
      for (const [agentId, older] of sightings) {
        const newer = seen.get(agentId);
        seen.set(agentId, newer === undefined ? older : joined(older, newer));
      }
      throw error;
    }
  };
  const writeAll = async (): Promise<void> => {
    while (used.size > 0) await writeCounts();
    while (seen.size > 0) await writeSightings();
  };

  let writing: Promise<void> = Promise.resolve();
  return {
    saveRequestsUsed: async (sessionHash, _, added) => addUsed(sessionHash, added),
    agentSeen: async (agentId, atMs, report, online) => {
      const reportedAtMs = report === null ? null : atMs;
      const sighting = { atMs, report, reportedAtMs, online, before: [] };
      seen.set(agentId, joined(seen.get(agentId), sighting));
    },
    flush: () => {
      // One at a time, so that what a failed write puts back is not overtaken.
      writing = writing.catch(() => undefined).then(writeAll);
      return writing;
    },
  };
};

/**
 * Removes some entries, in the order of their keys, so that two nodes writing the same ones never
 * deadlock.
 */
const first = <Value>(entries: Map<string, Value>): [string, Value][] => {
  const taken = [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, MAX_TOGETHER);
  for (const [key] of taken) entries.delete(key);
  return taken;
};
