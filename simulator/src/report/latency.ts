/**
 * Collects latencies: percentiles from an HDR histogram, and even buckets on a logarithmic scale
 * for the chart.
 */
import { build } from "hdr-histogram-js";
import type { Histogram, Latency } from "./report.ts";

const SMALLEST_MS = 0.1;
const DECADES = 6; // to 100 s

/** Buckets on a logarithmic scale, so many to each power of ten. */
export class LogScale {
  readonly size: number;
  private readonly perDecade: number;

  constructor(perDecade: number) {
    this.perDecade = perDecade;
    this.size = perDecade * DECADES;
  }

  /** The bucket of a latency; those beyond either end are in the outermost ones. */
  place(us: number): number {
    const place = Math.floor(Math.log10(us / 1000 / SMALLEST_MS) * this.perDecade);
    return Math.min(this.size - 1, Math.max(0, place));
  }

  /** The first bucket in use, the one after the last, and their edges; null if none is. */
  used(isUsed: (place: number) => boolean): { from: number; to: number; edges: number[] } | null {
    const used = Array.from({ length: this.size }, (_, place) => isUsed(place));
    const from = used.indexOf(true);
    const to = used.lastIndexOf(true) + 1;
    const edges = Array.from({ length: to - from + 1 }, (_, i) =>
      Number((SMALLEST_MS * 10 ** ((from + i) / this.perDecade)).toPrecision(3)),
    );
    return from < 0 ? null : { from, to, edges };
  }
}

const SCALE = new LogScale(16);

/** Collects microseconds, reports milliseconds. */
export class LatencyRecorder {
  private readonly histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: 3_600_000_000,
    numberOfSignificantValueDigits: 3,
  });

  record(us: number): void {
    this.histogram.recordValue(Math.max(1, Math.round(us)));
  }

  /** null until something was recorded. */
  summary(): Latency | null {
    if (this.histogram.totalCount === 0) return null;
    return {
      p50: this.percentile(50),
      p95: this.percentile(95),
      p99: this.percentile(99),
      max: this.histogram.maxValue / 1000,
    };
  }

  /** The end of a bucket, which is beyond its values: never more than there was. */
  private percentile(p: number): number {
    const { histogram } = this;
    return Math.min(histogram.getValueAtPercentile(p), histogram.maxValue) / 1000;
  }

  /** For thresholds, in milliseconds; null until something was recorded. */
  trend() {
    const { histogram } = this;
    if (histogram.totalCount === 0) return null;
    return {
      percentile: (p: number) => this.percentile(p),
      min: histogram.minNonZeroValue / 1000,
      max: histogram.maxValue / 1000,
      avg: histogram.mean / 1000,
      count: histogram.totalCount,
    };
  }
}

/** Counts for the chart: first and later calls, sixteen buckets to each power of ten. */
export class LatencyBuckets {
  private readonly first = new Array<number>(SCALE.size).fill(0);
  private readonly later = new Array<number>(SCALE.size).fill(0);

  record(us: number, isFirst: boolean): void {
    const counts = isFirst ? this.first : this.later;
    const bucket = SCALE.place(us);
    counts[bucket] = (counts[bucket] as number) + 1;
  }

  /** From the first bucket in use to the last one; no buckets if nothing was recorded. */
  histogram(): Histogram {
    const { first, later } = this;
    const used = SCALE.used((i) => (first[i] as number) + (later[i] as number) > 0);
    if (used === null) return { edges_ms: [], first: [], later: [] };
    const { from, to, edges } = used;
    return { edges_ms: edges, first: first.slice(from, to), later: later.slice(from, to) };
  }
}
