/**
 * How a build that has no log of its own gets one.
 *
 * [portable]
 */
import type { Log, StoragePort, TimerPort } from "../ports.ts";
import { keepingLog, type LogCore, openLog, SMALL_LOG_BYTES, serveLog } from "./log.ts";

export interface KeptLog {
  readonly log: Log;
  /** Called with the core before it starts. */
  readonly serve: (core: LogCore) => void;
}

export type KeepLog = (
  ports: { readonly timer: TimerPort; readonly storage: StoragePort; readonly log: Log },
  secrets: readonly string[],
  bootCount: number,
) => KeptLog;

/** The start option `keepLog`: a ring of so many bytes that `system.log` answers from. */
export const keepLog =
  (bytes: number = SMALL_LOG_BYTES): KeepLog =>
  (ports, secrets, bootCount) => {
    const kept = openLog({
      bytes: bytes,
      bootCount: bootCount,
      timer: ports.timer,
      storage: ports.storage,
      secrets: secrets,
    });
    return {
      log: keepingLog(kept, ports.log, () => ""),
      serve: (core) => serveLog(kept, core),
    };
  };
