/**
 * What a client may rely on: a call ends once; its result is the answer to this call, from this
 * agent; it is executed at most once unless idempotent, and exactly once if it was answered; not
 * later than its deadline and what devices' clocks are allowed; and after an error that is marked
 * retryable, a retry cannot lead to a second execution.
 */
import { EXPIRES_CLOCK_MS } from "@blindrelay/protocol";

export interface CallRecord {
  /** Unique. */
  readonly marker: number;
  readonly client: string;
  readonly agentId: string;
  readonly idempotent: boolean;
  /** Its deadline; Infinity: unknown. */
  readonly untilMs: number;
  executions: number;
  outcome: CallOutcome | null;
}

export type CallOutcome =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: { readonly code: string; readonly retryable: boolean } };

export interface CallRules {
  /** The world's time. */
  readonly nowMs?: () => number;
  /** The problem with an answer, or null. */
  judge?(call: CallRecord, result: unknown): string | null;
  /** Errors for which this world gives no cause. */
  readonly impossible?: readonly string[];
}

export class CallOracle {
  private readonly violate: (what: string) => void;
  private readonly rules: CallRules;
  private readonly calls = new Map<number, CallRecord>();
  private count = 0;

  constructor(violate: (what: string) => void, rules: CallRules = {}) {
    this.violate = violate;
    this.rules = rules;
  }

  made(
    client: string,
    agentId: string,
    idempotent: boolean,
    timeoutMs = Number.POSITIVE_INFINITY,
  ): CallRecord {
    const marker = this.count++;
    const untilMs = this.nowMs() + timeoutMs;
    const call = { marker, client, agentId, idempotent, untilMs, executions: 0, outcome: null };
    this.calls.set(marker, call);
    return call;
  }

  /** An agent's handler ran. */
  executed(agentId: string, marker: unknown): void {
    const call = this.calls.get(marker as number);
    if (call === undefined || call.agentId !== agentId) {
      this.violate(`${agentId} executed ${String(marker)}, which nobody called`);
      return;
    }
    call.executions += 1;
    const lateMs = this.nowMs() - call.untilMs;
    if (lateMs > EXPIRES_CLOCK_MS) {
      this.violate(`${nameOf(call)} was executed ${lateMs} ms after its deadline`);
    }
    if (call.executions > 1 && !call.idempotent) this.violate(`${nameOf(call)} executed again`);
    this.checkRetryable(call);
  }

  ended(call: CallRecord, outcome: CallOutcome): void {
    if (call.outcome !== null) this.violate(`${nameOf(call)} ended twice`);
    call.outcome = outcome;
    if (outcome.ok) {
      const wrong = this.rules.judge?.(call, outcome.result) ?? null;
      if (wrong !== null) this.violate(`${nameOf(call)} ${wrong}`);
      if (call.executions === 0) {
        this.violate(`${nameOf(call)} was answered but never executed`);
      }
    } else if (this.rules.impossible?.includes(outcome.error.code)) {
      this.violate(`${nameOf(call)} ended with ${outcome.error.code}`);
    }
    this.checkRetryable(call);
  }

  /** No message of this call can arrive any more. */
  forget(call: CallRecord): void {
    this.calls.delete(call.marker);
  }

  /** Calls that have no outcome yet. */
  get pending(): readonly CallRecord[] {
    return [...this.calls.values()].filter((call) => call.outcome === null);
  }

  private nowMs(): number {
    return this.rules.nowMs?.() ?? 0;
  }

  /** Checked both before and after an execution. */
  private checkRetryable(call: CallRecord): void {
    if (call.idempotent || call.outcome === null || call.outcome.ok) return;
    if (call.outcome.error.retryable && call.executions > 0) {
      this.violate(`${nameOf(call)} (${call.outcome.error.code}) may be retried, yet was executed`);
    }
  }
}

const nameOf = ({ marker, agentId, client }: CallRecord): string =>
  `call ${marker} of ${client} to ${agentId}`;
