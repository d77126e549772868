/**
 * Small helpers for charts drawn as SVG text: scales, ticks, axes, escaping. Units are the
 * viewBox's.
 */
import { count } from "./format.ts";

export const WIDTH = 960;
export const LEFT = 56;
export const RIGHT = WIDTH - 12;

export type Scale = (value: number) => number;

/** Maps [from, to] to [start, end]; a range without extent maps to `start`. */
export function linear(from: number, to: number, start: number, end: number): Scale {
  const extent = to - from;
  return (value) => (extent === 0 ? start : start + ((value - from) / extent) * (end - start));
}

/** Like `linear`, but logarithmic; `from` and `to` are above 0. */
export function logarithmic(from: number, to: number, start: number, end: number): Scale {
  const scale = linear(Math.log10(from), Math.log10(to), start, end);
  return (value) => scale(Math.log10(value));
}

/** Round values from 0 to at least `max`, about `count` of them. */
export function ticks(max: number, count: number): number[] {
  if (max <= 0) return [0];
  const rough = max / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.ceil(max / step - 1e-9) + 1 }, (_, i) =>
    Number((i * step).toPrecision(6)),
  );
}

/** Seconds from 0 to `lastS` at round numbers of seconds, minutes or hours, with their labels. */
export function timeTicks(lastS: number): [number, string][] {
  const [unit, name] = lastS > 7200 ? [3600, "h"] : lastS > 120 ? [60, "min"] : [1, "s"];
  return ticks(lastS / unit, 8)
    .map((value): [number, string] => [value * unit, `${value} ${name}`])
    .filter(([s]) => s <= lastS);
}

/** 1, 2 and 5 of every power of ten within [from, to]. */
export function logTicks(from: number, to: number): number[] {
  const found: number[] = [];
  for (let power = -2; power <= 6; power++) {
    for (const factor of [1, 2, 5]) {
      const value = Number((factor * 10 ** power).toPrecision(1));
      if (value >= from && value <= to) found.push(value);
    }
  }
  return found;
}

/** Text escaped for element content and quoted attributes. */
export function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A coordinate in short form. */
export function at(value: number): string {
  return String(Math.round(value * 10) / 10);
}

export function yAxis(values: number[], y: Scale): string[] {
  return values.map((value) => yLabel(y(value), count(value)));
}

/** A line across the chart, and its label at the left. */
export function yLabel(y: number, text: string): string {
  const grid = `<line class="grid" x1="${LEFT}" x2="${RIGHT}" y1="${at(y)}" y2="${at(y)}"/>`;
  return `${grid}<text class="tick" x="${LEFT - 8}" y="${at(y + 4)}" text-anchor="end">${text}</text>`;
}

export function xAxis(bottom: number): string {
  return `<line class="axis" x1="${LEFT}" x2="${RIGHT}" y1="${bottom}" y2="${bottom}"/>`;
}

export function xLabel(x: number, bottom: number, text: string): string {
  return `<text class="tick" x="${at(x)}" y="${bottom + 20}" text-anchor="middle">${text}</text>`;
}

export function svg(height: number, label: string, parts: string[]): string {
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${label}">${parts.join("")}</svg>`;
}
