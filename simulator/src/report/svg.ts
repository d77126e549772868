/** Small helpers for charts drawn as SVG text: scales, ticks, escaping. Units are the viewBox's. */

export type Scale = (value: number) => number;

/** Maps [from, to] to [start, end]; a range without extent maps to `start`. */
export function linear(from: number, to: number, start: number, end: number): Scale {
  const extent = to - from;
  return (value) => (extent === 0 ? start : start + ((value - from) / extent) * (end - start));
}

/** As `linear`, on the logarithm; `from` and `to` are over 0. */
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

/** Text made safe for element content and quoted attributes. */
export function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A coordinate, short. */
export function at(value: number): string {
  return String(Math.round(value * 10) / 10);
}
