/** Formats numbers for people: one format for each unit, in the table and on the page. */
import type { Latency } from "./report.ts";

/** "12,345". Without Intl, whose first use takes 90 ms. */
export function count(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** "0.8 ms", "12.3 ms", "450 ms", "1.2 s": three digits at most. */
export function milliseconds(ms: number): string {
  if (ms >= 1000) return seconds(ms / 1000);
  return `${ms >= 100 ? Math.round(ms) : ms.toFixed(ms >= 10 ? 1 : 2)} ms`;
}

/** p50, p95, p99 and the maximum; empty texts if there was no answer. */
export function percentiles(latency: Latency | null): string[] {
  if (latency === null) return ["", "", "", ""];
  return [latency.p50, latency.p95, latency.p99, latency.max].map(milliseconds);
}

/** "0.42 s", "12.3 s", "95 s". */
export function seconds(s: number): string {
  return `${s >= 60 ? Math.round(s) : s.toFixed(s >= 10 ? 1 : 2)} s`;
}

/** "812 B", "4.6 KB", "23.0 GB"; 1 KB is 1,024 bytes. */
export function bytes(value: number): string {
  let rest = value;
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (rest < 1024) return `${unit === "B" ? Math.round(rest) : rest.toFixed(1)} ${unit}`;
    rest /= 1024;
  }
  return `${rest.toFixed(1)} TB`;
}

/** "2026-01-01 12:00:00 UTC" of an ISO 8601 text in UTC. */
export function timestamp(iso: string): string {
  return iso.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC");
}

/** The text for a figure that could not be measured. */
export function orUnknown(value: number | null, write: (value: number) => string): string {
  return value === null ? "unknown" : write(value);
}
