/**
 * A board that sleeps between wakes (core/wake.ts): ESP32 in deep sleep, which ends with a start;
 * others leave the Wi-Fi, let Espruino sleep between its timers, and restart.
 *
 * [portable]
 */
import { keepSession, watchWake } from "../core/wake.ts";
import { boardCore, boardStorage, stopAgent } from "./agent.ts";
import { storageFiles } from "./files.ts";

declare const require: (name: string) => unknown;
declare const load: () => void;
declare const setTimeout: (fn: () => void, ms: number) => unknown;
declare const global: {
  readonly ESP32?: { deepSleep(microseconds: number): void };
};

/** `ESP32.deepSleep` takes a signed 32-bit number of microseconds. */
const MAX_SLEEP_MS = 2147000;
const IDLE_MS = 2000;
const AWAKE_MS = 30000;
/** Enough time to close the link. */
const LEAVE_MS = 500;

export interface BoardSleep {
  /** Milliseconds, 1,000 to 2,147,000. */
  readonly sleepMs: number;
  /** Sleeps after this long without a message; 2,000 by default. */
  readonly idleMs?: number;
  /** Sleeps after this long in any case; 30,000 by default. */
  readonly awakeMs?: number;
}

let isHeld = (): boolean => false;

/** The board stays awake while this returns true. */
export const holdAwake = (given: () => boolean): void => {
  isHeld = given;
};

const fallAsleep = (ms: number): void => {
  const chip = global.ESP32;
  if (chip !== undefined) {
    chip.deepSleep(ms * 1000);
    return;
  }
  try {
    (require("Wifi") as { disconnect(): void }).disconnect();
  } catch {
    // It uses another network.
  }
  setTimeout(load, ms);
};

/**
 * Lets the board sleep whenever no messages arrive; called by the program, which runs at every
 * wake. Throws for a time that the board cannot sleep.
 */
export const sleepWhenIdle = (given: BoardSleep): void => {
  const core = boardCore();
  const sleepMs = given.sleepMs;
  if (core === null) throw new Error("sleepWhenIdle is for the program's function");
  if (!(sleepMs >= 1000 && sleepMs <= MAX_SLEEP_MS)) throw new Error("sleepMs: 1000 to 2147000");
  keepSession(core, storageFiles(boardStorage));
  watchWake(
    core,
    {
      idleMs: given.idleMs === undefined ? IDLE_MS : given.idleMs,
      awakeMs: given.awakeMs === undefined ? AWAKE_MS : given.awakeMs,
    },
    () => isHeld(),
    () => {
      stopAgent();
      setTimeout(() => fallAsleep(sleepMs), LEAVE_MS);
    },
  );
};
