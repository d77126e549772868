/** The results of a run's calls: counts, latencies and failures by code. */
import { HeatMap } from "./heat.ts";
import { LatencyBuckets, LatencyRecorder } from "./latency.ts";
import { Outliers } from "./outliers.ts";
import type { FailureCount, Heat, Histogram, Outlier } from "./report.ts";

export interface KindTally {
  agents: number;
  calls: number;
  ok: number;
  latency: LatencyRecorder;
}

/** The outcomes of the calls so far. */
export class Tally {
  sent = 0;
  ok = 0;
  failed = 0;
  readonly all = new LatencyRecorder();
  readonly first = new LatencyRecorder();
  readonly kinds = new Map<string, KindTally>();
  private readonly buckets = new LatencyBuckets();
  private readonly codes = new Map<string, FailureCount>();
  private readonly heatMap = new HeatMap();
  private readonly devices = new Outliers();
  private readonly elapsedS: () => number;

  /** `elapsedS`: seconds since the start of the run. */
  constructor(elapsedS: () => number) {
    this.elapsedS = elapsedS;
  }

  fail(device: string, code: string, example: string): void {
    this.failed += 1;
    this.devices.record(device, null);
    const known = this.codes.get(code);
    if (known === undefined) this.codes.set(code, { code, count: 1, example });
    else known.count += 1;
  }

  succeed(device: string, kind: KindTally, us: number, isFirst: boolean): void {
    this.ok += 1;
    this.devices.record(device, us);
    this.heatMap.record(this.elapsedS(), us);
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

  heat(): Heat {
    return this.heatMap.result();
  }

  outliers(): Outlier[] {
    return this.devices.worst(this.all.summary()?.p50 ?? 0);
  }

  /** Most frequent first. */
  failures(): FailureCount[] {
    return [...this.codes.values()].sort((a, b) => b.count - a.count);
  }
}
