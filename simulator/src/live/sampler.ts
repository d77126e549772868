/**
 * Samples a live run once a second, and ends it when an aborting threshold is missed. Records when
 * the fleet became complete.
 */

import type { Measurements } from "../report/measure.ts";
import { reasonToAbort, type Threshold } from "../report/thresholds.ts";
import type { FleetChildren } from "./fleet-children.ts";
import type { LiveRelay } from "./relay.ts";

const SAMPLE_MS = 1_000;
/** A run that ends with its calls may be over within seconds. */
const SHORT_SAMPLE_MS = 250;

export interface SamplerOptions {
  fleet: FleetChildren;
  isShort: boolean;
  /** Devices of the plan. */
  count: number;
  relay: LiveRelay;
  measured: Measurements;
  thresholds: readonly Threshold[];
  /** The time in the plan. */
  elapsedMs(): number;
  /** Aborted if an aborting threshold is missed. */
  stopping: AbortController;
}

export class Sampler {
  /** When every device had come online; null before. */
  wholeMs: number | null = null;
  private readonly options: SamplerOptions;
  private timer: NodeJS.Timeout | undefined;

  constructor(options: SamplerOptions) {
    this.options = options;
  }

  start(): void {
    const ms = this.options.isShort ? SHORT_SAMPLE_MS : SAMPLE_MS;
    this.timer = setInterval(() => this.watch(), ms);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  sample(): void {
    const { fleet, count, relay, measured, elapsedMs } = this.options;
    const connected = fleet.connected();
    measured.gaugeAt("agents.online", connected);
    measured.gaugeAt("agents.offline", count - connected);
    if (fleet.everConnected() >= count) this.wholeMs ??= performance.now();
    measured.set("agents.reconnects", fleet.logins() - fleet.everConnected());
    const { ok, failed } = measured.tally;
    const at_s = Number((elapsedMs() / 1000).toFixed(3));
    measured.series.push({ at_s, connected, ok, failed });
    relay.readFigures();
  }

  private watch(): void {
    this.sample();
    const { thresholds, elapsedMs, measured, stopping } = this.options;
    const why = reasonToAbort(thresholds, elapsedMs() * 1000, measured);
    if (why !== null) stopping.abort(new Error(why));
  }
}
