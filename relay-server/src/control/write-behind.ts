/**
 * What the hub leaves behind (core/ports.ts, WriteBehind), written once a second and in groups: a
 * fleet that comes back at once would otherwise ask for a flush of the disk per device. What cannot
 * be written is kept and tried again, however long the store is away. What a killed process loses
 * is a second of `last_seen` and of request counts, which nobody was promised.
 */
import type { AgentReport } from "../core/link.ts";
import type { WriteBehind } from "../core/ports.ts";
import { writeSighting } from "../store/agents.ts";
import type { Store } from "../store/open.ts";
import { confirmOffers } from "../store/releases.ts";
import { addRequestsUsed } from "../store/sessions.ts";

interface Sighting {
  readonly atMs: number;
  /** What it said when it came; null where it only went. */
  readonly report: AgentReport | null;
}

/** Entries of one transaction: others who write wait for no more than that. */
const MAX_TOGETHER = 200;

export interface StoreWriteBehind extends WriteBehind {
  /** Writes what is waiting; resolves when that, and what was being written, is there to read. */
  flush(): Promise<void>;
}

export const storeWriteBehind = (store: Store): StoreWriteBehind => {
  /** Requests by session that the store does not know of. */
  const used = new Map<string, number>();
  const seen = new Map<string, Sighting>();
  const addUsed = (hash: string, requests: number) => {
    used.set(hash, (used.get(hash) ?? 0) + requests);
  };
  const addSeen = (agentId: string, { atMs, report }: Sighting) => {
    seen.set(agentId, { atMs, report: report ?? seen.get(agentId)?.report ?? null });
  };

  const writeCounts = async (): Promise<void> => {
    const counts = first(used);
    try {
      await store.write(async (tx) => {
        for (const [hash, requests] of counts) await addRequestsUsed(tx, hash, requests);
      });
    } catch (error) {
      // A commit whose answer was lost is counted twice: a token may end early, and never late.
      for (const [hash, requests] of counts) addUsed(hash, requests);
      throw error;
    }
  };
  const writeSightings = async (): Promise<void> => {
    const sightings = first(seen);
    try {
      await store.write(async (tx) => {
        for (const [agentId, { atMs, report }] of sightings) {
          await writeSighting(tx, agentId, atMs, report);
          const booted = report?.firmwareVersion ?? null;
          if (booted !== null) await confirmOffers(tx, agentId, booted, atMs);
        }
      });
    } catch (error) {
      for (const [agentId, older] of sightings) {
        const newer = seen.get(agentId);
        seen.set(
          agentId,
          newer === undefined ? older : { ...newer, report: newer.report ?? older.report },
        );
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
    agentSeen: async (agentId, atMs, report) => addSeen(agentId, { atMs, report }),
    flush: () => {
      // One at a time, so that what a failed one puts back is not overtaken.
      writing = writing.catch(() => undefined).then(writeAll);
      return writing;
    },
  };
};

/**
 * Takes some entries out, in the order of their keys: two nodes that write the same ones never
 * deadlock.
 */
const first = <Value>(entries: Map<string, Value>): [string, Value][] => {
  const taken = [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, MAX_TOGETHER);
  for (const [key] of taken) entries.delete(key);
  return taken;
};
