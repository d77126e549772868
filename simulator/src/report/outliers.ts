/** The devices with the slowest or most failed calls. */
import { getOrMake } from "../base/maps.ts";
import type { Outlier } from "./report.ts";

const SHOWN = 10;
/** A device is slow if its slowest answer takes so many times the median. */
const SLOW = 5;

interface Seen {
  calls: number;
  failed: number;
  maxUs: number;
}

export class Outliers {
  private readonly devices = new Map<string, Seen>();

  /** `us`: latency of a correct answer; null for a failed call. */
  record(device: string, us: number | null): void {
    const seen = getOrMake(this.devices, device, () => ({ calls: 0, failed: 0, maxUs: 0 }));
    seen.calls += 1;
    if (us === null) seen.failed += 1;
    else if (us > seen.maxUs) seen.maxUs = us;
  }

  /** Those with most failed calls first, then the slowest; none if all are alike. */
  worst(medianMs: number): Outlier[] {
    return [...this.devices]
      .map(([device, { calls, failed, maxUs }]) => ({
        device,
        calls,
        failed,
        max_ms: maxUs / 1000,
      }))
      .filter(({ failed, max_ms }) => failed > 0 || max_ms > SLOW * medianMs)
      .sort((a, b) => b.failed - a.failed || b.max_ms - a.max_ms || (a.device < b.device ? -1 : 1))
      .slice(0, SHOWN);
  }
}
