/**
 * Collects latencies: percentiles from an HDR histogram, and even buckets on a logarithmic scale
 * for the chart.
 */
import { build } from "hdr-histogram-js";
import type { Histogram, Latency } from "./report.ts";

const BUCKETS_PER_DECADE = 16;
const SMALLEST_MS = 0.1;
const DECADES = 6; // to 100 s

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
      p50: this.histogram.getValueAtPercentile(50) / 1000,
      p95: this.histogram.getValueAtPercentile(95) / 1000,
      p99: this.histogram.getValueAtPercentile(99) / 1000,
      max: this.histogram.maxValue / 1000,
    };
  }

  /** For thresholds, in milliseconds; null until something was recorded. */
  trend() {
    const { histogram } = this;
    if (histogram.totalCount === 0) return null;
    return {
      percentile: (p: number) => histogram.getValueAtPercentile(p) / 1000,
      min: histogram.minNonZeroValue / 1000,
      max: histogram.maxValue / 1000,
      avg: histogram.mean / 1000,
      count: histogram.totalCount,
    };
  }
}

/** Counts for the chart: first and later calls, sixteen buckets to each power of ten. */
export class LatencyBuckets {
  private readonly first = new Array<number>(BUCKETS_PER_DECADE * DECADES).fill(0);
  private readonly later = new Array<number>(BUCKETS_PER_DECADE * DECADES).fill(0);

  record(us: number, isFirst: boolean): void {
    const place = Math.floor(Math.log10(us / 1000 / SMALLEST_MS) * BUCKETS_PER_DECADE);
    const counts = isFirst ? this.first : this.later;
    const bucket = Math.min(counts.length - 1, Math.max(0, place));
    counts[bucket] = (counts[bucket] as number) + 1;
  }

  /** From the first bucket in use to the last one; no buckets if nothing was recorded. */
  histogram(): Histogram {
    const used = this.first.map((count, i) => count + (this.later[i] as number) > 0);
    const from = used.indexOf(true);
    const to = used.lastIndexOf(true) + 1;
    if (from < 0) return { edges_ms: [], first: [], later: [] };
    const edges = Array.from({ length: to - from + 1 }, (_, i) => {
      return Number((SMALLEST_MS * 10 ** ((from + i) / BUCKETS_PER_DECADE)).toPrecision(3));
    });
    return {
      edges_ms: edges,
      first: this.first.slice(from, to),
      later: this.later.slice(from, to),
    };
  }
}
