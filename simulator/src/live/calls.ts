/** Counts the calls of a live run, and checks how each of them ended. */
import type { CallError } from "@blindrelay/client-sdk/node";
import type { CallEnd, ExecutionOracle } from "../oracle/executions.ts";
import type { LivenessOracle } from "../oracle/liveness.ts";
import type { Measurements } from "../report/measure.ts";
import type { OpenCall } from "../report/tally.ts";
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
  private isOver = false;

  constructor(options: LiveCallsOptions) {
    this.options = options;
  }

  /** The run is over: calls in flight stay without an outcome. */
  end(): void {
    this.isOver = true;
  }

  /** `dueMs`: when it was meant to begin, at `performance.now()`; null: now. */
  asked(device: number, method: string, isFirst: boolean, dueMs: number | null): OpenCall {
    const { measured, plan, devices, planMs } = this.options;
    const { id } = devices[device] as Called;
    const { group } = plan.devices[device] as PlannedDevice;
    const fromUs = dueMs === null ? undefined : planMs(dueMs) * 1000;
    return measured.tally.asked({ device: id, group, method }, isFirst, fromUs);
  }

  /** Returns whether it is right. */
  ended({ open, load, device, question, fromMs, error, result }: EndedCall): boolean {
    const { measured, oracles, liveness, executions } = this.options;
    const { tally } = measured;
    // The end of the run itself gave it up: it had no outcome.
    if (this.isOver) return false;
    const { id } = this.options.devices[device] as Called;
    const { kind = "call" } = question;
    if (kind !== "event") {
      // A stream was opened by a call, which may have run however the stream ended.
      const end = kind === "call" || error === null ? endOf(error) : "unknown";
      executions.ended(id, end, load.spec.idempotent ?? false);
    }
    const revokedMs = this.options.revoked.get(device);
    const isAnswer = error === null || error.remote !== undefined;
    if (isAnswer && revokedMs !== undefined && fromMs > revokedMs) {
      oracles.violate("revoked", `${id} answered a call that began after its token was revoked`);
    }
    const { isRight } = tally.judge(open, question, result, error);
    if (error === null || isRight) return isRight;
    const { remote, code, message } = error;
    const isStopped = this.options.signal.aborted;
    // Before the fleet is complete, a device may well be offline.
    const wholeMs = this.options.wholeMs();
    const isWhole = wholeMs !== null && fromMs >= wholeMs;
    // Whether there is an event, and when a stream ends, is up to the program.
    const isItsOwn = kind !== "call" && code === "TIMED_OUT";
    if (remote === undefined && !isStopped && isWhole && !isItsOwn) {
      liveness.callFailed(
        this.options.planMs(fromMs) * 1000,
        code,
        `a call of ${load.name} to ${id} ended with ${code}: ${message}`,
      );
    }
    return isRight;
  }
}

/** A device's own error may occur before or after it did something. */
function endOf(error: CallError | null): CallEnd {
  if (error === null) return "answered";
  return error.retryable && error.remote === undefined ? "retryable" : "unknown";
}
