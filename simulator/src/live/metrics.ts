/** Reads a relay's `/metrics`. */

/** Only for a relay that hangs. */
const LIMIT_MS = 10_000;

/** What the relay's process has used and done so far, and what it holds now. */
export interface RelayUsage {
  rssBytes: number;
  cpuUs: number;
  forwarded: number;
  /** By reason. */
  dropped: ReadonlyMap<string, number>;
  connections: number;
  bindings: number;
  queueBytes: number;
}

/** Reads `/metrics`; null if the relay does not answer or lacks a figure. */
export async function readUsage(metricsUrl: string): Promise<RelayUsage | null> {
  try {
    const answer = await fetch(metricsUrl, { signal: AbortSignal.timeout(LIMIT_MS) });
    const text = await answer.text();
    const figures = {
      rssBytes: sum(text, "process_resident_memory_bytes"),
      cpuUs: Math.round(sum(text, "process_cpu_seconds_total") * 1e6),
      forwarded: sum(text, "blindrelay_forwarded_total"),
      connections: sum(text, "blindrelay_connections"),
      bindings: sum(text, "blindrelay_bindings"),
      queueBytes: sum(text, "blindrelay_queue_bytes"),
    };
    if (!Object.values(figures).every(Number.isFinite)) return null;
    const dropped = samples(text, "blindrelay_dropped_total").map(
      ({ label, value }) => [label, value] as const,
    );
    return { ...figures, dropped: new Map(dropped) };
  } catch {
    return null;
  }
}

/** All samples of one metric in the Prometheus text format, by the value of their one label. */
function samples(text: string, metric: string): { label: string; value: number }[] {
  const lines = new RegExp(`^${metric}(?:\\{(?:[^"}]*"([^"]*)")?[^}]*\\})? ([0-9.e+-]+)$`, "gm");
  return [...text.matchAll(lines)].map(([, label = "", value]) => ({
    label,
    value: Number(value),
  }));
}

/** The sum of all samples; NaN if there is none. */
function sum(text: string, metric: string): number {
  const found = samples(text, metric);
  return found.length === 0 ? Number.NaN : found.reduce((total, { value }) => total + value, 0);
}
