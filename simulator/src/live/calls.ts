/** Counts the calls of a live run, and checks how each of them ended. */
import type { CallError } from "@blindrelay/client-sdk/node";
import type { CallEnd, ExecutionOracle } from "../oracle/executions.ts";
import type { LivenessOracle } from "../oracle/liveness.ts";
import type { Measurements } from "../report/measure.ts";
import { type OpenCall, WRONG_ANSWER } from "../report/tally.ts";
import type { Plan, PlannedDevice } from "../scenario/plan.ts";
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

  /** `dueMs`: when it was meant to begin, at `performance.now()`; null: now. */
  asked(device: number, isFirst: boolean, dueMs: number | null): OpenCall {
    const { measured, plan, devices, planMs } = this.options;
    const { id } = devices[device] as Called;
    const { group } = plan.devices[device] as PlannedDevice;
    const fromUs = dueMs === null ? undefined : planMs(dueMs) * 1000;
    return measured.tally.asked(id, group, isFirst, fromUs);
  }

  ended({ open, load, device, method, fromMs, ...outcome }: EndedCall): void {
    const { measured, oracles, liveness, executions } = this.options;
    const { tally } = measured;
    const { id } = this.options.devices[device] as Called;
    const { error, result } = outcome;
    executions.ended(id, endOf(error), load.spec.idempotent ?? false);
    const revokedMs = this.options.revoked.get(device);
    const isAnswer = error === null || error.remote !== undefined;
    if (isAnswer && revokedMs !== undefined && fromMs > revokedMs) {
      oracles.violate("revoked", `${id} answered a call that began after its token was revoked`);
    }
    if (error !== null) {
      const { remote, code, message } = error;
      tally.fail(open, remote === undefined ? code : `${code} ${remote.code}`, message);
      const isOver = this.options.signal.aborted || code === "ABORTED";
      // Before the fleet is complete, a device may well be offline.
      const wholeMs = this.options.wholeMs();
      const isWhole = wholeMs !== null && fromMs >= wholeMs;
      if (remote === undefined && !isOver && isWhole) {
        liveness.callFailed(
          this.options.planMs(fromMs) * 1000,
          code,
          `a call of ${load.name} to ${id} ended with ${code}: ${message}`,
        );
      }
    } else if (outcome.isRight) tally.succeed(open);
    else {
      const shown = JSON.stringify(result)?.slice(0, 200);
      tally.fail(open, WRONG_ANSWER, `${id} answered ${method} with ${shown}`);
    }
  }
}

/** A device's own error may occur before or after it did something. */
function endOf(error: CallError | null): CallEnd {
  if (error === null) return "answered";
  return error.retryable && error.remote === undefined ? "retryable" : "unknown";
}
