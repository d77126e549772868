/**
 * What a person may rely on: a call ends once; its result is the answer to this call, from this
 * agent; it is executed at most once unless idempotent; and an error that calls itself retryable
 * really cannot lead to a second execution.
 */

export interface CallRecord {
  /** Unique; params carry it to the agent and the result carries it back. */
  readonly marker: number;
  readonly person: string;
  readonly agentId: string;
  readonly idempotent: boolean;
  outcome: CallOutcome | null;
}

export type CallOutcome =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: { readonly code: string; readonly retryable: boolean } };

/** Ends that our agents and this relay give no reason for. */
const IMPOSSIBLE = ["REMOTE", "BAD_ANSWER", "BAD_ARGUMENT", "TOO_LARGE", "BUSY", "REFUSED"];

export class CallOracle {
  private readonly violate: (what: string) => void;
  private readonly calls: CallRecord[] = [];
  private readonly executions = new Map<number, string[]>();

  constructor(violate: (what: string) => void) {
    this.violate = violate;
  }

  made(person: string, agentId: string, idempotent: boolean): CallRecord {
    const marker = this.calls.length;
    const call: CallRecord = { marker, person, agentId, idempotent, outcome: null };
    this.calls.push(call);
    return call;
  }

  /** An agent's handler ran. */
  executed(agentId: string, marker: unknown): void {
    const call = this.calls[marker as number];
    if (call === undefined || call.agentId !== agentId) {
      this.violate(`${agentId} executed ${String(marker)}, which nobody asked of it`);
      return;
    }
    const all = this.executions.get(call.marker) ?? [];
    all.push(agentId);
    this.executions.set(call.marker, all);
    if (all.length > 1 && !call.idempotent) this.violate(`call ${call.marker} executed again`);
    this.checkRetryable(call);
  }

  ended(call: CallRecord, outcome: CallOutcome): void {
    if (call.outcome !== null) this.violate(`call ${call.marker} ended twice`);
    call.outcome = outcome;
    if (outcome.ok) {
      const { echo, from } = (outcome.result ?? {}) as { echo?: unknown; from?: unknown };
      if (echo !== call.marker || from !== call.agentId) {
        this.violate(`call ${call.marker} got ${JSON.stringify(outcome.result)}`);
      }
      if (!this.executions.has(call.marker)) this.violate(`call ${call.marker} never executed`);
    } else if (IMPOSSIBLE.includes(outcome.error.code)) {
      this.violate(`call ${call.marker} ended with ${outcome.error.code}`);
    }
    this.checkRetryable(call);
  }

  /** Calls that have no outcome yet. */
  get pending(): readonly CallRecord[] {
    return this.calls.filter((call) => call.outcome === null);
  }

  /** Said before an execution as well as after it. */
  private checkRetryable(call: CallRecord): void {
    if (call.idempotent || call.outcome === null || call.outcome.ok) return;
    if (call.outcome.error.retryable && this.executions.has(call.marker)) {
      this.violate(
        `call ${call.marker} (${call.outcome.error.code}) may be retried, yet was executed`,
      );
    }
  }
}
