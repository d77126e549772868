/** Counts the calls of a live run, and checks how each of them ended. */
import type { CallError } from "@blindrelay/client-sdk/node";
import type { CallEnd, ExecutionOracle } from "../oracle/executions.ts";
import type { LivenessOracle } from "../oracle/liveness.ts";
import type { Plan, PlannedDevice } from "../plan.ts";
import type { Measurements } from "../report/measure.ts";
import type { Called, EndedCall } from "./clients.ts";
import type { LiveOracles } from "./oracles.ts";

export interface LiveCallsOptions {
  plan: Plan;
  devices: readonly Called[];
  measured: Measurements;
  oracles: LiveOracles;
  liveness: LivenessOracle;
  executions: ExecutionOracle;
  /** Devices with a revoked token, and when the revocation was acknowledged. */
  revoked: ReadonlyMap<number, number>;
  /** When every device had come online; null before. */
  wholeMs(): number | null;
  /** The time in the plan at `performance.now()`. */
  planMs(atMs: number): number;
  /** The end of the run. */
  signal: AbortSignal;
}

export class LiveCalls {
  private readonly options: LiveCallsOptions;

  constructor(options: LiveCallsOptions) {
    this.options = options;
  }

  asked(device: number): void {
    const { tally } = this.options.measured;
    tally.sent += 1;
    tally.kind(this.groupOf(device)).calls += 1;
  }

  ended({ load, device, method, isFirst, fromMs, ...outcome }: EndedCall): void {
    const { measured, oracles, liveness, executions } = this.options;
    const { tally } = measured;
    const { id } = this.options.devices[device] as Called;
    const nowMs = performance.now();
    const { error, result } = outcome;
    executions.ended(id, endOf(error), load.spec.idempotent ?? false);
    const revokedMs = this.options.revoked.get(device);
    const isAnswer = error === null || error.remote !== undefined;
    if (isAnswer && revokedMs !== undefined && fromMs > revokedMs) {
      oracles.violate("revoked", `${id} answered a call that began after its token was revoked`);
    }
    if (error !== null) {
      const { remote, code, message } = error;
      tally.fail(id, remote === undefined ? code : `${code} ${remote.code}`, message);
      const isOver = this.options.signal.aborted || code === "ABORTED";
      // Before the fleet is complete, a device may well be offline.
      const wholeMs = this.options.wholeMs();
      const isWhole = wholeMs !== null && fromMs >= wholeMs;
      if (remote === undefined && !isOver && isWhole) {
        liveness.callFailed(
          this.options.planMs(fromMs) * 1000,
          `a call of ${load.name} to ${id} ended with ${code}: ${message}`,
        );
      }
    } else if (outcome.isRight) {
      tally.succeed(id, tally.kind(this.groupOf(device)), (nowMs - fromMs) * 1000, isFirst);
    } else {
      measured.wrong += 1;
      const what = `${id} answered ${method} with ${JSON.stringify(result)?.slice(0, 200)}`;
      tally.fail(id, "WRONG_ANSWER", what);
      oracles.violate("answers", what);
    }
  }

  private groupOf(device: number): string {
    return (this.options.plan.devices[device] as PlannedDevice).group;
  }
}

/** A device's own error may occur before or after it did something. */
function endOf(error: CallError | null): CallEnd {
  if (error === null) return "answered";
  return error.retryable && error.remote === undefined ? "retryable" : "unknown";
}
