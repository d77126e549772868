/**
 * What the hub leaves behind (core/ports.ts, WriteBehind), written in one transaction a second: a fleet
 * that comes back at once would otherwise ask for a flush of the disk per device. What a killed
 * process loses is a second of `last_seen` and of request counts, which nobody was promised.
 */

import type { AgentReport } from "../core/link.ts";
import type { WriteBehind } from "../core/ports.ts";
import { writeSighting } from "../store/agents.ts";
import type { Store } from "../store/open.ts";
import { confirmOffers } from "../store/releases.ts";
import { writeRequestsUsed } from "../store/sessions.ts";

interface Sighting {
  readonly atMs: number;
  /** What it said when it came; null where it only went. */
  readonly report: AgentReport | null;
}

export interface StoreWriteBehind extends WriteBehind {
  /** Writes what is waiting; resolves when that, and what was being written, is there to read. */
  flush(): Promise<void>;
}

export const storeWriteBehind = (store: Store): StoreWriteBehind => {
  let used = new Map<string, number>();
  let seen = new Map<string, Sighting>();
  let writing: Promise<void> = Promise.resolve();
  return {
    saveRequestsUsed: async (sessionHash, count) => {
      used.set(sessionHash, count);
    },
    agentSeen: async (agentId, nowMs, report) => {
      seen.set(agentId, { atMs: nowMs, report: report ?? seen.get(agentId)?.report ?? null });
    },
    flush: () => {
      if (used.size === 0 && seen.size === 0) return writing;
      const [counts, sightings] = [used, seen];
      used = new Map();
      seen = new Map();
      const written = store.write(async (tx) => {
        for (const [hash, count] of counts) await writeRequestsUsed(tx, hash, count);
        for (const [agentId, { atMs, report }] of sightings) {
          await writeSighting(tx, agentId, atMs, report);
          const booted = report?.firmwareVersion ?? null;
          if (booted !== null) await confirmOffers(tx, agentId, booted, atMs);
        }
      });
      writing = written.catch(() => undefined); // whoever began it is told
      return written;
    },
  };
};
