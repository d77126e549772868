/**
 * The charts of the report as SVG text. Colours come from the page's style, so they follow light
 * and dark mode.
 */
import { count, milliseconds, seconds } from "./format.ts";
import type { Histogram, Latency, Report } from "./report.ts";
import {
  at,
  escapeText,
  LEFT,
  linear,
  logarithmic,
  logTicks,
  RIGHT,
  type Scale,
  svg,
  ticks,
  timeTicks,
  xAxis,
  xLabel,
  yAxis,
  yLabel,
} from "./svg.ts";

/** Calls by latency: bars on a logarithmic scale of milliseconds, percentiles as marks. */
export function latencyChart(histogram: Histogram, latency: Latency | null): string {
  const edges = histogram.edges_ms;
  if (edges.length < 2 || latency === null) return `<p class="none">No call was answered.</p>`;
  const height = 300;
  const top = 44;
  const bottom = height - 34;
  const totals = histogram.first.map((n, i) => n + (histogram.later[i] as number));
  const yTicks = ticks(Math.max(...totals), 4);
  const x = logarithmic(edges[0] as number, edges.at(-1) as number, LEFT, RIGHT);
  const y = linear(0, yTicks.at(-1) as number, bottom, top);

  const bars = totals.map((total, i) => {
    if (total === 0) return "";
    const from = edges[i] as number;
    const to = edges[i + 1] as number;
    const later = histogram.later[i] as number;
    const left = at(x(from) + 1);
    const width = at(Math.max(1, x(to) - x(from) - 2));
    const title = `${milliseconds(from)} to ${milliseconds(to)}: ${count(later)} calls, ${count(total - later)} first calls`;
    return (
      `<g><title>${title}</title>` +
      `<rect class="hover" x="${left}" y="${top}" width="${width}" height="${at(bottom - top)}"/>` +
      `<rect class="later" x="${left}" y="${at(y(later))}" width="${width}" height="${at(bottom - y(later))}"/>` +
      `<rect class="first" x="${left}" y="${at(y(total))}" width="${width}" height="${at(y(later) - y(total))}"/></g>`
    );
  });
  // Marks that are close together alternate between two rows.
  let row = 0;
  let lastX = Number.NEGATIVE_INFINITY;
  const marks = (["p50", "p95", "p99"] as const).map((name) => {
    const place = x(latency[name]);
    const toLeft = place > RIGHT - 84;
    row = place - lastX < (toLeft ? 200 : 120) ? 1 - row : 0;
    lastX = place;
    const labelY = 12 + row * 16;
    const label = `${name} ${milliseconds(latency[name])}`;
    return (
      `<line class="mark" x1="${at(place)}" x2="${at(place)}" y1="${labelY - 10}" y2="${bottom}"/>` +
      `<text class="mark" x="${at(place + (toLeft ? -6 : 6))}" y="${labelY}"${toLeft ? ' text-anchor="end"' : ""}>${label}</text>`
    );
  });
  const xTicks = logTicks(edges[0] as number, edges.at(-1) as number);
  return svg(height, "Latency of correct answers", [
    ...yAxis(yTicks, y),
    ...bars,
    xAxis(bottom),
    ...xTicks.map((ms) => xLabel(x(ms), bottom, duration(ms))),
    ...marks,
  ]);
}

/** Agents connected and calls answered per second, over the same time axis. */
export function timeChart(report: Report): string {
  const samples = report.series;
  const last = samples.at(-1);
  if (last === undefined || samples.length < 2)
    return `<p class="none">The run was too short for a curve.</p>`;
  const height = 350;
  const x = linear(0, last.at_s, LEFT, RIGHT);

  const upperTop = 34;
  const upperBottom = 150;
  const upperTicks = ticks(Math.max(1, report.agents.requested), 3);
  const upperY = linear(0, upperTicks.at(-1) as number, upperBottom, upperTop);
  const connected = samples.map((sample) => [x(sample.at_s), upperY(sample.connected)] as const);

  const rates = samples.slice(1).map((sample, i) => {
    const before = samples[i] as (typeof samples)[number];
    const span = Math.max(0.001, sample.at_s - before.at_s);
    return {
      at_s: (sample.at_s + before.at_s) / 2,
      ok: (sample.ok - before.ok) / span,
      failed: (sample.failed - before.failed) / span,
    };
  });
  const lowerTop = 206;
  const lowerBottom = height - 30;
  const lowerTicks = ticks(Math.max(1, ...rates.map((rate) => rate.ok + rate.failed)), 3);
  const lowerY = linear(0, lowerTicks.at(-1) as number, lowerBottom, lowerTop);
  const answered = rates.map((rate) => [x(rate.at_s), lowerY(rate.ok)] as const);
  const firstFailed = rates.findIndex((rate) => rate.failed > 0);
  const lastFailed = rates.findLastIndex((rate) => rate.failed > 0);
  const failed = rates
    .slice(Math.max(0, firstFailed - 1), lastFailed + 2)
    .map((rate) => [x(rate.at_s), lowerY(rate.failed)] as const);

  return svg(height, "Connections and calls over time", [
    ...faultBands(report, x, upperTop, upperBottom),
    ...faultBands(report, x, lowerTop, lowerBottom),
    `<text class="title" x="${LEFT}" y="16">agents connected</text>`,
    ...yAxis(upperTicks, upperY),
    area("connected", connected, upperBottom),
    xAxis(upperBottom),
    `<text class="title" x="${LEFT}" y="${lowerTop - 18}">answers per second</text>`,
    ...yAxis(lowerTicks, lowerY),
    area("later", answered, lowerBottom),
    firstFailed >= 0 ? area("failed", failed, lowerBottom) : "",
    xAxis(lowerBottom),
    ...timeTicks(last.at_s).map(([s, text]) => xLabel(x(s), lowerBottom, text)),
    ...phaseMarks(report, x, upperTop, lowerBottom),
  ]);
}

const CLASSES = 5;

/** The number of answers by latency and time: the darker, the more. */
export function heatChart(report: Report): string {
  const { heat, series } = report;
  const lastS = series.at(-1)?.at_s ?? 0;
  if (heat.edges_ms.length < 2 || lastS === 0) return `<p class="none">No call was answered.</p>`;
  const height = 300;
  const top = 12;
  const bottom = height - 34;
  const [least, most] = [heat.edges_ms[0] as number, heat.edges_ms.at(-1) as number];
  const x = linear(0, lastS, LEFT, RIGHT);
  const y = logarithmic(least, most, bottom, top);
  const highest = Math.max(...heat.columns.flat());
  // Single calls must be visible next to thousands, so classes are logarithmic.
  const classOf = (calls: number): number =>
    highest === 1 ? CLASSES : 1 + Math.round((Math.log(calls) / Math.log(highest)) * (CLASSES - 1));
  const cells = Array.from({ length: CLASSES + 1 }, () => "");
  for (const [i, column] of heat.columns.entries()) {
    const left = x(i * heat.column_s);
    const width = Math.max(1, x(Math.min(lastS, (i + 1) * heat.column_s)) - left);
    for (const [row, calls] of column.entries()) {
      if (calls === 0) continue;
      const upper = y(heat.edges_ms[row + 1] as number);
      const tall = y(heat.edges_ms[row] as number) - upper;
      cells[classOf(calls)] += `M${at(left)},${at(upper)}h${at(width)}v${at(tall)}h${at(-width)}z`;
    }
  }
  return svg(height, "Latency of correct answers over time", [
    ...faultBands(report, x, top, bottom),
    ...cells.map((path, i) => (path === "" ? "" : `<path class="heat heat-${i}" d="${path}"/>`)),
    ...logTicks(least, most).map((ms) => yLabel(y(ms), duration(ms))),
    xAxis(bottom),
    ...timeTicks(lastS).map(([s, text]) => xLabel(x(s), bottom, text)),
  ]);
}

/** A band for the duration of each fault; the shortest ones are widened to be visible. */
function faultBands(report: Report, x: Scale, top: number, bottom: number): string[] {
  return report.faults.map(({ kind, at_s, until_s }) => {
    const left = Math.min(RIGHT - 2, x(at_s));
    const width = Math.max(2, Math.min(RIGHT, x(until_s)) - left);
    const title = `${escapeText(kind)} at ${seconds(at_s)}${until_s > at_s ? ` until ${seconds(until_s)}` : ""}`;
    return `<rect class="fault" x="${at(left)}" y="${top}" width="${at(width)}" height="${bottom - top}"><title>${title}</title></rect>`;
  });
}

/**
 * A thin line where each phase ends; labels would crowd short phases, so they are the line's
 * tooltip.
 */
function phaseMarks(report: Report, x: Scale, top: number, bottom: number): string[] {
  const lastX = x(report.series.at(-1)?.at_s ?? 0);
  let end = 0;
  return report.phases.map((phase) => {
    end += phase.seconds;
    if (x(end) > lastX) return "";
    const title = `${escapeText(phase.name)}: ${seconds(phase.seconds)}`;
    const place = `x1="${at(x(end))}" x2="${at(x(end))}" y1="${top}" y2="${bottom}"`;
    return `<g><title>${title}</title><line class="phase" ${place}/><line class="hover" ${place}/></g>`;
  });
}

function area(name: string, points: (readonly [number, number])[], bottom: number): string {
  const line = points.map(([px, py]) => `${at(px)},${at(py)}`).join(" L");
  const from = at(points[0]?.[0] ?? 0);
  const to = at(points.at(-1)?.[0] ?? 0);
  return `<path class="${name} fill" d="M${from},${bottom} L${line} L${to},${bottom} Z"/><path class="${name} line" d="M${line}"/>`;
}

const duration = (ms: number): string => (ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`);
