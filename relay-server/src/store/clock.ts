/**
 * The clock that judges what is stored: expiry, one-time codes, retention. Nodes on one store read
 * each other's times, so for PostgreSQL it is the database's: this machine's steady clock, set by
 * asking the database. An embedded store has no clock of its own, and the machine's is used.
 */
import { type Kysely, sql } from "kysely";
import type { Clocks } from "../base/clock.ts";
import type { Tables } from "./tables.ts";

/** A machine whose clock is further off than this is told to set it. */
const APART_MS = 5000;

export interface StoreClock {
  /** Unix time. */
  nowMs(): number;
  /** How far this machine's clock is ahead; negative: behind. */
  aheadMs(): number;
  /** Whether the two clocks are certainly apart. */
  isApart(): boolean;
  /** Asks the database. Rejects if it does not answer; then the last answer counts on. */
  look(): Promise<void>;
}

export const machineClock = ({ wallMs }: Clocks): StoreClock => ({
  nowMs: wallMs,
  aheadMs: () => 0,
  isApart: () => false,
  look: () => Promise.resolve(),
});

/** Has asked once. */
export const databaseClock = async (
  db: Kysely<Tables>,
  { steadyMs, wallMs }: Clocks,
): Promise<StoreClock> => {
  // How far the database is ahead of the steady clock, and how wrong that may be.
  let [offsetMs, doubtMs] = [0, Number.POSITIVE_INFINITY];
  const look = async () => {
    const askedMs = steadyMs();
    const now = sql<{
      ms: number;
    }>`select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`;
    const { rows } = await now.execute(db);
    const halfMs = (steadyMs() - askedMs) / 2 + 1; // the steady clock is in whole milliseconds
    const foundMs = (rows[0]?.ms ?? Number.NaN) - askedMs - halfMs;
    // A slow answer that does not contradict a quick one is the worse of the two.
    if (doubtMs < halfMs && Math.abs(foundMs - offsetMs) <= halfMs + doubtMs) return;
    [offsetMs, doubtMs] = [foundMs, halfMs];
  };
  await look();
  const nowMs = () => Math.round(steadyMs() + offsetMs);
  const aheadMs = () => wallMs() - nowMs();
  const isApart = () => Math.abs(aheadMs()) > APART_MS + doubtMs;
  return { nowMs, aheadMs, isApart, look };
};
