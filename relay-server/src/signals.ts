/** SIGTERM and SIGINT while the relay runs: the first one drains it. */
import { constants } from "node:os";
import type { Logger } from "pino";
import { contained } from "./contain.ts";

/**
 * Counted from the first signal; a third one after that ends the relay without waiting for the
 * drain.
 */
const INSIST_AFTER_MS = 5000;

/** The parts of `process` that this needs. */
interface SignalSource {
  on(event: "SIGTERM" | "SIGINT", listener: (signal: NodeJS.Signals) => void): unknown;
  exit(code: number): void;
}

/**
 * Resolves with the first SIGTERM or SIGINT. A second one is ignored, because npm and a terminal's
 * Ctrl-C send two; a late third one means that the user does not want to wait any longer, and exits
 * with the code of a process ended by the signal.
 */
export const firstSignal = (
  log: Pick<Logger, "warn">,
  source: SignalSource = process,
  nowMs: () => number = () => performance.now(),
): Promise<void> =>
  new Promise((resolve) => {
    let startedMs = 0;
    let count = 0;
    const onSignal = contained("process", "a signal failed", (signal: NodeJS.Signals) => {
      count += 1;
      if (count === 1) {
        startedMs = nowMs();
        resolve();
      } else if (count === 2 || nowMs() - startedMs < INSIST_AFTER_MS) {
        log.warn({ signal }, "draining already: this signal is ignored");
      } else {
        log.warn({ signal }, "ended before the drain was over: a third signal asked for it");
        source.exit(128 + constants.signals[signal]);
      }
    });
    source.on("SIGTERM", onSignal);
    source.on("SIGINT", onSignal);
  });
