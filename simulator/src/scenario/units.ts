/** Quantities as written in a scenario: `10m`, `20/s`, `10%`, `1MB`. */

// Nine digits: far more than any run needs.
const NUMBER = "[0-9]{1,9}(\\.[0-9]+)?";
export const DURATION = `^${NUMBER}(ms|s|m|h|d)$`;
export const RATE = `^${NUMBER}/(s|m|h)$`;
export const SHARE = "^(100(\\.0+)?|[0-9]{1,2}(\\.[0-9]+)?)%$";
export const BYTES = `^${NUMBER}(B|KB|MB|GB)$`;
/** Not 0, which a network takes for unlimited. */
export const BYTE_RATE = `^(?!0+(\\.0+)?[BKM])${NUMBER}(B|KB|MB)/s$`;

export const INSTANT = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?Z$";
export const IDENTIFIER = "^[A-Za-z][A-Za-z0-9_]{0,39}$";

/** The error for invalid values. */
export const EXPECTED: ReadonlyMap<string, string> = new Map([
  [DURATION, "a duration with its unit (ms, s, m, h or d), such as 10m or 500ms"],
  [RATE, "a rate, such as 20/s, 5/m or 100/h"],
  [SHARE, "a share from 0% to 100%, such as 10%"],
  [BYTES, "a size with its unit (B, KB, MB or GB), such as 1MB"],
  [INSTANT, "a time in UTC, such as 2026-03-29T00:30:00Z"],
  [BYTE_RATE, "a bandwidth above 0, such as 16KB/s"],
  [IDENTIFIER, "a name of letters and digits, such as lease"],
]);

export const MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
/** 1 KB is 1,024 bytes. */
export const SIZES: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1024,
  MB: 1024 ** 2,
  GB: 1024 ** 3,
};

const split = (text: string): [number, string] => {
  const [, number, unit] = /^([0-9.]+)(.*)$/.exec(text) as unknown as [string, string, string];
  return [Number(number), unit];
};

/** "10m" in milliseconds. The schema has already checked the text. */
export const durationMs = (text: string): number => {
  const [number, unit] = split(text);
  return number * (MS[unit] as number);
};

/** "20/s" as events per millisecond. */
export const ratePerMs = (text: string): number => {
  const [number, unit] = split(text);
  return number / (MS[unit.slice(1)] as number);
};

/** "10%" as 0.1. */
export const shareOf = (text: string): number => split(text)[0] / 100;

/** "1MB" in bytes; "16KB/s" in bytes per second. */
export const sizeOf = (text: string): number => {
  const [number, unit] = split(text.replace("/s", ""));
  return number * (SIZES[unit] as number);
};

/** "1 device", "2 devices". */
export const plural = (n: number, what: string): string => `${n} ${what}${n === 1 ? "" : "s"}`;

/** 90000 as "1m 30s", for people. */
export const showMs = (ms: number): string => {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  const parts: string[] = [];
  let rest = Math.round(ms);
  for (const [unit, size] of [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
  ] as const) {
    if (rest >= size) parts.push(`${Math.floor(rest / size)}${unit}`);
    rest %= size;
  }
  if (rest > 0 || parts.length === 0) parts.push(`${Number((rest / 1_000).toFixed(3))}s`);
  return parts.join(" ");
};
