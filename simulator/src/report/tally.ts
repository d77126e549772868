/** What came of the calls of a run: counts, latencies and failures by code. */
import { LatencyBuckets, LatencyRecorder } from "./latency.ts";
import type { Failure, Histogram } from "./report.ts";

export interface KindTally {
  agents: number;
  calls: number;
  ok: number;
  latency: LatencyRecorder;
}

/** What came of the calls so far. */
export class Tally {
  sent = 0;
  ok = 0;
  failed = 0;
  readonly all = new LatencyRecorder();
  readonly first = new LatencyRecorder();
  readonly kinds = new Map<string, KindTally>();
  private readonly buckets = new LatencyBuckets();
  private readonly codes = new Map<string, Failure>();

  fail(code: string, example: string): void {
    this.failed += 1;
    const known = this.codes.get(code);
    if (known === undefined) this.codes.set(code, { code, count: 1, example });
    else known.count += 1;
  }

  succeed(kind: KindTally, us: number, isFirst: boolean): void {
    this.ok += 1;
    kind.ok += 1;
    kind.latency.record(us);
    this.all.record(us);
    if (isFirst) this.first.record(us);
    this.buckets.record(us, isFirst);
  }

  kind(name: string): KindTally {
    const known = this.kinds.get(name);
    if (known !== undefined) return known;
    const made = { agents: 0, calls: 0, ok: 0, latency: new LatencyRecorder() };
    this.kinds.set(name, made);
    return made;
  }

  histogram(): Histogram {
    return this.buckets.histogram();
  }

  /** Most frequent first. */
  failures(): Failure[] {
    return [...this.codes.values()].sort((a, b) => b.count - a.count);
  }
}
