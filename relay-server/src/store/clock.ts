/**
 * Compares this machine's clock with the database's. Nodes on one store read each other's times:
 * one whose clock is wrong refuses right one-time codes, and may lock their user out on all nodes.
 */
import { type Kysely, sql } from "kysely";
import type { Tables } from "./tables.ts";

/** More than this is said: a sixth of what nodes may differ by. */
const APART_MS = 5000;

/** PostgreSQL's only: an embedded store has no clock of its own. */
export interface StoreClock {
  /** How far this machine was ahead of the database when it was last asked; negative: behind. */
  aheadMs(): number;
  /** Asks. Rejects if the database does not answer. */
  look(): Promise<void>;
}

/** `onApart`: called by each look that finds the clocks apart. */
export const storeClock = (
  db: Kysely<Tables>,
  wallMs: () => number,
  onApart: (aheadMs: number) => void,
): StoreClock => {
  let ahead = 0;
  return {
    aheadMs: () => ahead,
    look: async () => {
      const askedMs = wallMs();
      const now = sql<{
        ms: number;
      }>`select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`;
      const { rows } = await now.execute(db);
      const waitedMs = wallMs() - askedMs;
      ahead = Math.round(askedMs + waitedMs / 2 - (rows[0]?.ms ?? Number.NaN));
      if (Math.abs(ahead) > APART_MS + Math.abs(waitedMs) / 2) onApart(ahead);
    },
  };
};
