import type { Scenario } from "../scenario/schema.ts";

/** The shape of report.json. Scripts depend on it: fields may be added but never renamed. */

export interface Report {
  ok: boolean;
  /** Why the run ended early ("the relay ended (SIGKILL)"), or null. */
  stopped: string | null;
  seed: number;
  /** Of a run with several seeds (`--seeds`): its first and last one, on all machines together. */
  seeds?: [number, number];
  /** ISO 8601. */
  started_at: string;
  duration_s: number;
  agents: { requested: number; connected: number };
  /** `failed` counts every planned call without a correct answer, including those never sent. */
  calls: { planned: number; sent: number; ok: number; failed: number };
  /** Of all calls, a failed one until it failed; null if there were none. */
  latency_ms: Latency | null;
  /** The first call to each agent opens a session first: two more round trips. */
  first_call_latency_ms: Latency | null;
  /**
   * How much later than planned calls began, because this machine was busy; latencies count from
   * the planned moment. Null in the virtual world, and where calls have no moment of their own.
   */
  lateness_ms: Latency | null;
  /** Right answers, between the first call and the last outcome. */
  calls_per_second: number;
  relay: {
    rss_bytes_per_agent: number | null;
    cpu_us_per_message: number | null;
    /** Messages that the relay forwarded while calls were made. */
    messages: number | null;
  };
  simulator: { rss_bytes_per_agent: number | null };
  thresholds: JudgedThreshold[];
  kinds: KindResult[];
  failures: FailureCount[];
  phases: { name: string; seconds: number }[];
  series: Sample[];
  histogram: Histogram;
  heat: Heat;
  /** At most ten. */
  outliers: Outlier[];
  machine: Machine;
  world: "virtual" | "live";
  /** What sealed: real cryptography, or the model of `--crypto model`. */
  crypto: "real" | "model";
  /** As it was run, with flags applied. */
  scenario: Scenario;
  /** Its device programs by path, so that the report alone is enough to repeat the run. */
  programs: Record<string, string>;
  /** Hexadecimal. Virtual: of everything that happened. Live: of the plan. */
  trace: string;
  oracles: OracleResult[];
  /** Bands in the charts over time. */
  faults: { kind: string; at_s: number; until_s: number }[];
  dropped: { reason: string; count: number }[];
  /** The end of the trace of a run that an oracle ended; sealed packets with what is in them. */
  last_events?: string[];
  /** Of the first call that failed with each code; in the virtual world only. */
  timelines?: Timeline[];
  /** The smallest scenario that reproduces what was broken, and the end of its trace. */
  shrunk: Shrunk | null;
}

export interface OracleResult {
  name: string;
  ok: boolean;
  /** What it checks, or what violated it. */
  detail: string;
}

export interface Shrunk {
  scenario: Scenario;
  seed: number;
  trace: string;
  detail: string;
  lines: string[];
}

export interface Latency {
  p50: number;
  p95: number;
  p99: number;
  max: number;
}

/** `value`: the left side of the expression. */
export interface JudgedThreshold {
  expression: string;
  ok: boolean;
  value: number | null;
}

export interface KindResult {
  kind: string;
  agents: number;
  connected: number;
  calls: number;
  ok: number;
  latency_ms: Latency | null;
  /** Bytes free in a call at the end, where engines tell it: the least of up to 20 devices. */
  free_memory_bytes?: number;
}

/** What happened from a call's beginning to its end, as lines with plaintexts. */
export interface Timeline {
  call: string;
  lines: string[];
}

/** Failed calls and connections by code; `example` is one of their messages. */
export interface FailureCount {
  code: string;
  count: number;
  example: string;
}

/** The state `at_s` seconds after the start. `ok` and `failed` calls are totals. */
export interface Sample {
  at_s: number;
  connected: number;
  ok: number;
  failed: number;
}

/**
 * Correct answers by latency: bucket i counts from `edges_ms[i]` to below `edges_ms[i + 1]`; first
 * calls apart from later ones.
 */
export interface Histogram {
  edges_ms: number[];
  first: number[];
  later: number[];
}

/**
 * Correct answers over time: `columns[i][j]` counts those that came from `i` to `i + 1` times
 * `column_s` after the start and took from `edges_ms[j]` to below `edges_ms[j + 1]`.
 */
export interface Heat {
  column_s: number;
  edges_ms: number[];
  columns: number[][];
}

/** A device with failed calls, or with an answer far slower than the median. */
export interface Outlier {
  device: string;
  calls: number;
  failed: number;
  max_ms: number;
}

export interface Machine {
  cpus: number;
  cpu_model: string;
  memory_bytes: number;
  platform: string;
  node: string;
}
