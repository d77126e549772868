/**
 * Notices when the process has hardly any file descriptors left. The operating system then refuses
 * connections, and Node closes them without an event, so nothing else would tell why peers cannot
 * connect.
 */
import { readFileSync, statSync } from "node:fs";

const OPEN_FILES = "/proc/self/fd";
const LIMITS = "/proc/self/limits";
/** Of the limit: from here on they count as scarce, and below that as enough again. */
const SCARCE = 15 / 16;
const ENOUGH = 7 / 8;
/** A shortage that goes on is logged again after this time. */
const EVERY_MS = 60_000;

/** 0: the system does not say it. Takes no descriptor: Linux 6.2 and newer. */
export const openFiles = (): number => statSync(OPEN_FILES, { throwIfNoEntry: false })?.size ?? 0;

/** Infinite: there is no limit, or the system does not say it. Call it while some are left. */
export const maxOpenFiles = (path = LIMITS): number => {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync(path, "utf8")) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
};

/** What a look found; null: nothing to say. */
export type Finding = "scarce" | "enough" | null;

/** Call what it returns every second. */
export const descriptorWatch = (
  max: number,
  nowMs: () => number,
  open: () => number = openFiles,
): (() => Finding) => {
  let saidAtMs: number | null = null;
  return () => {
    const share = open() / max;
    if (saidAtMs !== null && share < ENOUGH) {
      saidAtMs = null;
      return "enough";
    }
    if (share < SCARCE || (saidAtMs !== null && nowMs() - saidAtMs < EVERY_MS)) return null;
    saidAtMs = nowMs();
    return "scarce";
  };
};
