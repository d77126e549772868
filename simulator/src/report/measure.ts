/**
 * What a run measures: outcomes and latencies of calls, gauges over time, for both thresholds and
 * the report.
 */

import { getOrMake } from "../base/maps.ts";
import type { Measured, Metric, Selection } from "../scenario/thresholds.ts";
import { count } from "./format.ts";
import { ProgramErrors } from "./program-errors.ts";
import type { Sample } from "./report.ts";
import { Tally } from "./tally.ts";
import type { Threshold } from "./thresholds.ts";

interface Gauge {
  last: number;
  min: number;
  max: number;
  sum: number;
  count: number;
}

export class Measurements implements Measured {
  readonly tally: Tally;
  readonly series: Sample[] = [];
  readonly programErrors = new ProgramErrors();
  private readonly counters = new Map<Metric, number>();
  private readonly gauges = new Map<Metric, Gauge>();

  /** `nowUs`: microseconds since the start of the run. */
  constructor(nowUs: () => number) {
    this.tally = new Tally(nowUs);
  }

  /** Measures what these thresholds are about. Before the first call. */
  follow(thresholds: readonly Threshold[]): void {
    for (const { parsed, fromUs, untilUs } of thresholds) {
      if (parsed.where !== null) this.tally.choose(parsed.where, fromUs, untilUs);
    }
  }

  set(metric: Metric, value: number): void {
    this.counters.set(metric, value);
  }

  gaugeAt(metric: Metric, value: number): void {
    const made = () => ({ last: value, min: value, max: value, sum: 0, count: 0 });
    const gauge = getOrMake(this.gauges, metric, made);
    gauge.last = value;
    gauge.min = Math.min(gauge.min, value);
    gauge.max = Math.max(gauge.max, value);
    gauge.sum += value;
    gauge.count += 1;
  }

  /** One line for somebody who watches the run. */
  inWords(): string {
    const { ok, failed } = this.tally;
    const failures = failed === 0 ? "" : `, ${count(failed)} failed`;
    return `${count(this.gauge("agents.online")?.last ?? 0)} online, ${count(ok)} right${failures}`;
  }

  trend(_metric: Metric, where: Selection | null = null) {
    return this.tally.outcomes(where)?.latency.trend() ?? null;
  }

  /** Null if the value is unknown, as for an external relay, or of calls of which none was made. */
  counter(metric: Metric, where: Selection | null = null): number | null {
    const outcomes = this.tally.outcomes(where);
    switch (metric) {
      case "call.sent":
        return outcomes?.sent ?? null;
      case "call.ok":
        return outcomes?.ok ?? null;
      case "call.failed":
        return outcomes?.failed ?? null;
      case "call.wrong":
        return outcomes?.wrong ?? null;
      default:
        return this.counters.get(metric) ?? (metric.startsWith("relay.") ? null : 0);
    }
  }

  gauge(metric: Metric) {
    const gauge = this.gauges.get(metric);
    if (gauge === undefined) return null;
    const { last, min, max, sum, count } = gauge;
    return { last, min, max, avg: sum / count };
  }
}
