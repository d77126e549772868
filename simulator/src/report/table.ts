/** The table at the end of a run, for a terminal. */
import { plural } from "../scenario/units.ts";
import { bytes, count, milliseconds, orUnknown, percentiles, seconds } from "./format.ts";
import type { Latency, Report } from "./report.ts";

/** Lines for a terminal of 80 columns; `where`: the page with more details. */
export function renderTable(report: Report, where: string): string {
  const { agents, calls, relay } = report;
  const rows = [
    ["agents", `${count(agents.connected)} of ${count(agents.requested)} connected`],
    [
      "calls",
      `${count(calls.ok)} of ${count(calls.planned)} right`,
      `${count(report.calls_per_second)} a second`,
    ],
    ["latency", ...latencyCells(report.latency_ms)],
    ...(report.lateness_ms === null
      ? []
      : [["lateness", ...latencyCells(report.lateness_ms), "of calls, on this machine"]]),
    ...(report.world === "live"
      ? [
          [
            "relay",
            ...(relay.rss_bytes_per_agent === null && relay.cpu_us_per_message === null
              ? ["not measured: it runs elsewhere"]
              : [
                  `${orUnknown(relay.rss_bytes_per_agent, bytes)} an agent`,
                  `${orUnknown(relay.cpu_us_per_message, (us) => us.toFixed(1))} us CPU a message`,
                ]),
          ],
          ["fleet", `${orUnknown(report.simulator.rss_bytes_per_agent, bytes)} an agent`],
          ...report.kinds.flatMap(({ kind, free_memory_bytes: free }) =>
            free === undefined ? [] : [["memory", `${count(free)} bytes free in ${kind}`]],
          ),
        ]
      : []),
    ["seed", String(report.seed)],
    ["world", report.world],
    ["crypto", report.crypto === "model" ? "model: nothing was encrypted" : "real"],
    ["trace", report.trace],
    ["report", where],
  ];
  const kinds = [
    ["kind", "agents", "calls", "correct", "p50", "p95", "p99", "max"],
    ...report.kinds.map((kind) => [
      kind.kind,
      count(kind.agents),
      count(kind.calls),
      count(kind.ok),
      ...percentiles(kind.latency_ms),
    ]),
  ];
  const failures = report.failures.map(({ code, count: times, example }) => [
    code,
    count(times),
    example,
  ]);
  return [
    "",
    ...columns(kinds, "right"),
    "",
    ...columns(rows, "left"),
    "",
    ...(failures.length === 0
      ? []
      : ["failures", ...columns(failures, "left").map((line) => `  ${line}`), ""]),
    ...judged(report),
    verdict(report),
    "",
  ].join("\n");
}

/** Thresholds and oracles, failed ones with the reason. */
function judged(report: Report): string[] {
  const { thresholds, oracles, shrunk, seed, last_events: last = [], timelines = [] } = report;
  const rows = thresholds.map(({ expression, ok, value }) => [
    ok ? "ok" : "BROKEN",
    expression,
    value === null ? "not known" : String(Number(value.toPrecision(6))),
  ]);
  const lines = rows.length === 0 ? [] : ["thresholds", ...columns(rows, "left").map(indent), ""];
  const broken = oracles.filter(({ ok }) => !ok);
  const good = oracles.length - broken.length;
  lines.push(`oracles  ${good} of ${oracles.length} held`);
  for (const { name, detail } of broken) lines.push(indent(`BROKEN  ${name}: ${detail}`));
  const isAnswers = broken.some(({ name }) => name === "answers");
  for (const { call, lines: events } of shrunk === null && isAnswers ? timelines.slice(0, 2) : []) {
    lines.push("", `the first ${call} (seed ${seed}):`, ...events.map(shown));
  }
  if (shrunk === null && last.length > 0) {
    lines.push("", `the last events (seed ${seed}):`, ...last.map(shown));
  }
  if (shrunk !== null) {
    const { scenario } = shrunk;
    const devices = scenario.devices.reduce((sum, one) => sum + one.count, 0);
    lines.push(
      "",
      `shrunk to ${plural(devices, "device")}, ${plural(scenario.clients?.length ?? 0, "group")} of clients, ${plural(scenario.faults?.length ?? 0, "fault")}, ${scenario.duration}; seed ${seed}; the end of its trace:`,
      ...shrunk.lines.map(shown),
    );
  }
  return [...lines, ""];
}

const shown = (line: string): string => indent(line.slice(0, 160));
const indent = (line: string): string => `  ${line}`;

function verdict(report: Report): string {
  const total = seconds(report.duration_s);
  if (report.ok) return `All right, in ${total}.`;
  return report.stopped === null
    ? `FAILED, in ${total}.`
    : `FAILED: ${report.stopped}, after ${total}.`;
}

function latencyCells(latency: Latency | null): string[] {
  if (latency === null) return ["no call was answered"];
  const cell = (...names: (keyof Latency)[]): string =>
    names.map((name) => `${name} ${milliseconds(latency[name])}`).join("  ");
  return [cell("p50", "p95"), cell("p99", "max")];
}

/**
 * Cells padded to the width of their column; the first column left-aligned. In left-aligned
 * columns, the last cell of a row is not padded, so it does not widen its column either.
 */
function columns(rows: string[][], side: "left" | "right"): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      if (side === "left" && i === row.length - 1) return;
      widths[i] = Math.max(widths[i] ?? 0, cell.length);
    });
  }
  return rows.map((row) =>
    row
      .map((cell, i) =>
        side === "left" || i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0),
      )
      .join("  ")
      .trimEnd(),
  );
}
