/**
 * The two pictures of the report as SVG text. Colours come from the page's style, so they follow
 * light and dark.
 */
import type { Histogram, Latency, Report } from "./report.ts";
import { at, escapeText, linear, logarithmic, logTicks, type Scale, ticks } from "./svg.ts";
import { count, milliseconds, seconds } from "./words.ts";

const WIDTH = 960;
const LEFT = 56;
const RIGHT = WIDTH - 12;

/**
 * How many calls took how long: bars on a logarithmic scale of milliseconds, percentiles as marks.
 */
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
  // Marks that lie close together take turns in two rows.
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
  return svg(height, "Latency of right answers", [
    ...yAxis(yTicks, y),
    ...bars,
    xAxis(bottom),
    ...xTicks.map((ms) => xLabel(x(ms), bottom, ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`)),
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
    `<text class="title" x="${LEFT}" y="16">agents connected</text>`,
    ...yAxis(upperTicks, upperY),
    area("connected", connected, upperBottom),
    xAxis(upperBottom),
    `<text class="title" x="${LEFT}" y="${lowerTop - 18}">answers per second</text>`,
    ...yAxis(lowerTicks, lowerY),
    area("later", answered, lowerBottom),
    firstFailed >= 0 ? area("failed", failed, lowerBottom) : "",
    xAxis(lowerBottom),
    ...ticks(last.at_s, 8)
      .filter((s) => s <= last.at_s)
      .map((s) => xLabel(x(s), lowerBottom, `${s} s`)),
    ...phaseMarks(report, x, upperTop, lowerBottom),
  ]);
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

function yAxis(values: number[], y: Scale): string[] {
  return values.map((value) => {
    const place = at(y(value));
    const grid = `<line class="grid" x1="${LEFT}" x2="${RIGHT}" y1="${place}" y2="${place}"/>`;
    return `${grid}<text class="tick" x="${LEFT - 8}" y="${at(y(value) + 4)}" text-anchor="end">${count(value)}</text>`;
  });
}

function xAxis(bottom: number): string {
  return `<line class="axis" x1="${LEFT}" x2="${RIGHT}" y1="${bottom}" y2="${bottom}"/>`;
}

function xLabel(x: number, bottom: number, text: string): string {
  return `<text class="tick" x="${at(x)}" y="${bottom + 20}" text-anchor="middle">${text}</text>`;
}

function svg(height: number, label: string, parts: string[]): string {
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${label}">${parts.join("")}</svg>`;
}
