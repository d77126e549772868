/**
 * What a run must satisfy: `p(99, call.latency_ms) < 250`. One comparison of one figure; the figure
 * is a function of a metric, or the bare metric (its last value, or its total).
 *
 *   trend   call.latency_ms          p(N, …) min max avg count
 *   counter call.sent call.ok …      bare: total; rate(call.failed): share of calls
 *   gauge   agents.online …          bare: last; min max avg
 *
 * Figures of calls may be of some only: `call.latency_ms{group=pumps,method=pump.state}`, or of
 * those that begin in a phase.
 */

import { MS, SIZES } from "./units.ts";

export const METRICS = {
  "call.latency_ms": "trend",
  "call.sent": "counter",
  "call.ok": "counter",
  "call.failed": "counter",
  "call.wrong": "counter",
  "agents.online": "gauge",
  "agents.offline": "gauge",
  "agents.reconnects": "counter",
  "relay.queue_bytes": "gauge",
  "relay.connections": "gauge",
  "relay.bindings": "gauge",
  "relay.dropped": "counter",
  "relay.forwarded": "counter",
} as const;

export type Metric = keyof typeof METRICS;
type MetricKind = (typeof METRICS)[Metric];

const FUNCTIONS: Readonly<Record<string, readonly MetricKind[]>> = {
  p: ["trend"],
  min: ["trend", "gauge"],
  max: ["trend", "gauge"],
  avg: ["trend", "gauge"],
  count: ["trend", "counter"],
  rate: ["counter"],
  last: ["gauge"],
};

/** Calls to the devices of one group, of one method, in one phase, or what several of these say. */
export interface Selection {
  group?: string;
  method?: string;
  phase?: string;
}

export interface ParsedThreshold {
  fn: string;
  /** The percentile for `p`. */
  percentile: number;
  metric: Metric;
  /** The calls that count; null: all. */
  where: Selection | null;
  operator: keyof typeof OPERATORS;
  limit: number;
}

const NAME = "[a-z][a-z_.]*";
const METRIC = `${NAME}(?:\\s*\\{[^{}]*\\})?`;
const EXPRESSION = new RegExp(
  `^\\s*(?:([a-z]+)\\s*\\(\\s*(?:([0-9.]+)\\s*,\\s*)?(${METRIC})\\s*\\)|(${METRIC}))\\s*(<=|>=|==|!=|<|>)\\s*([0-9]+(?:\\.[0-9]+)?)\\s*(ms|s|m|h|B|KB|MB|GB|%)?\\s*$`,
);

const UNITS: Readonly<Record<string, number>> = { ...MS, ...SIZES };

/** The expression's parts, or an error message. */
export function parseThreshold(text: string): ParsedThreshold | { problem: string } {
  const match = EXPRESSION.exec(text);
  if (match === null) {
    return {
      problem: `not a threshold: "${text}"; write one like p(99, call.latency_ms) < 250, rate(call.failed) < 1%, max(relay.queue_bytes) < 1MB or agents.online == 600`,
    };
  }
  const [, fn = "", percentile, inside, bare, operator, number, unit] = match;
  const [name = "", chosen] = (inside ?? bare ?? "").split(/[{}]/);
  const metric = name.trim();
  if (!Object.hasOwn(METRICS, metric)) {
    return { problem: `unknown metric "${metric}"; there are ${Object.keys(METRICS).join(", ")}` };
  }
  const kind = METRICS[metric as Metric];
  if (fn !== "") {
    const kinds = Object.hasOwn(FUNCTIONS, fn) ? FUNCTIONS[fn] : undefined;
    if (kinds === undefined) {
      return {
        problem: `unknown function "${fn}"; there are ${Object.keys(FUNCTIONS).join(", ")}`,
      };
    }
    if (!kinds.includes(kind)) return { problem: `${fn}() does not go with ${metric}, a ${kind}` };
  } else if (kind === "trend") {
    return { problem: `${metric} needs a function, such as p(99, ${metric})` };
  }
  const share = percentile === undefined ? Number.NaN : Number(percentile);
  if (fn === "p" && !(share > 0 && share <= 100)) {
    return { problem: `p() needs a percentile above 0, up to 100, such as p(99, ${metric})` };
  }
  if (fn !== "p" && percentile !== undefined) return { problem: `${fn}() takes the metric only` };
  if (fn === "rate" && !metric.startsWith("call.")) {
    return { problem: `rate() is a share of calls and does not go with ${metric}` };
  }
  if (chosen !== undefined && !metric.startsWith("call.")) {
    return { problem: `${metric} is no figure of calls: omit {${chosen}}` };
  }
  const where = chosen === undefined ? null : parseSelection(chosen);
  if (typeof where === "string") return { problem: where };
  const units = unitsOf(fn, metric as Metric);
  if (unit !== undefined && !units.includes(unit)) {
    const known = units.length === 0 ? "a number without a unit" : `in ${units.join(", ")}`;
    return { problem: `${number}${unit}: what is compared is ${known}` };
  }
  // 99.9 * 0.01 and 99.9 / 100 are both more than 0.999.
  const limit = unit === "%" ? Number(`${number}e-2`) : Number(number) * (UNITS[unit ?? ""] ?? 1);
  if (fn === "rate" && limit > 1) {
    return { problem: `a rate is a share of calls, at most 1: write ${number}%` };
  }
  return {
    fn,
    percentile: share,
    metric: metric as Metric,
    where,
    operator: operator as ParsedThreshold["operator"],
    limit,
  };
}

/** The units in which a limit may be written; without one, it is in ms, bytes, or a share of 1. */
function unitsOf(fn: string, metric: Metric): readonly string[] {
  if (fn === "rate") return ["%"];
  if (fn === "count") return [];
  if (metric === "call.latency_ms") return ["ms", "s", "m", "h"];
  return metric === "relay.queue_bytes" ? Object.keys(SIZES) : [];
}

/** What stands between the braces, or an error message. */
function parseSelection(text: string): Selection | string {
  const where: Selection = {};
  for (const part of text.split(",")) {
    const [, key, value] = /^(group|method|phase)\s*=\s*(\S.*)$/.exec(part.trim()) ?? [];
    if (key === undefined || where[key as keyof Selection] !== undefined) {
      return `not a choice of calls: {${text}}; write one like {group=pumps}, {method=pump.state}, {phase=load} or {group=pumps,method=pump.state}`;
    }
    where[key as keyof Selection] = value as string;
  }
  return where;
}

/** A run's measurements, for the left side of an expression. */
export interface Measured {
  trend(
    metric: Metric,
    where: Selection | null,
  ): {
    percentile(p: number): number;
    min: number;
    max: number;
    avg: number;
    count: number;
  } | null;
  counter(metric: Metric, where: Selection | null): number | null;
  gauge(metric: Metric): { last: number; min: number; max: number; avg: number } | null;
}

/** The figure on the left, null if nothing was measured; a threshold on null does not hold. */
export function evaluate(
  threshold: ParsedThreshold,
  measured: Measured,
): { value: number | null; ok: boolean } {
  const value = figure(threshold, measured);
  return { value, ok: value !== null && OPERATORS[threshold.operator](value, threshold.limit) };
}

function figure(
  { fn, percentile, metric, where }: ParsedThreshold,
  measured: Measured,
): number | null {
  const kind: MetricKind = METRICS[metric];
  if (kind === "counter") {
    const total = measured.counter(metric, where);
    if (total === null || fn !== "rate") return total;
    const sent = measured.counter("call.sent", where) ?? 0;
    return sent === 0 ? null : total / sent;
  }
  if (kind === "gauge") {
    const gauge = measured.gauge(metric);
    if (gauge === null) return null;
    return fn === "" ? gauge.last : gauge[fn as "last" | "min" | "max" | "avg"];
  }
  const trend = measured.trend(metric, where);
  if (fn === "count") return trend?.count ?? (where === null ? 0 : null);
  if (trend === null) return null;
  return fn === "p" ? trend.percentile(percentile) : trend[fn as "min" | "max" | "avg"];
}

const OPERATORS = {
  "<": (a: number, b: number): boolean => a < b,
  "<=": (a: number, b: number): boolean => a <= b,
  ">": (a: number, b: number): boolean => a > b,
  ">=": (a: number, b: number): boolean => a >= b,
  "==": (a: number, b: number): boolean => a === b,
  "!=": (a: number, b: number): boolean => a !== b,
} as const;
