/** Times as flags. */
import { InvalidArgumentError } from "commander";

const UNITS: { readonly [unit: string]: number } = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

const periodOf = (text: string): number => {
  const [, digits = "", unit = ""] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  return Number(digits) * (UNITS[unit] ?? 0);
};

/** Such as 30d. In milliseconds. Throws an InvalidArgumentError for other texts. */
export const period = (text: string): number => {
  const ms = periodOf(text);
  if (ms > 0) return ms;
  throw new InvalidArgumentError("a time from now, such as 90m, 12h or 30d");
};

/**
 * A period from now, or a time in UTC such as 2027-06-30 or 2027-06-30T12:00:00Z. In Unix seconds,
 * later than now. Throws an InvalidArgumentError for other texts.
 */
export const end = (text: string): number => {
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?$/.test(text);
  const ms = isTime ? Date.parse(text) : Date.now() + periodOf(text);
  if (ms > Date.now()) return Math.floor(ms / 1000);
  throw new InvalidArgumentError("a later time: 90d, 2027-06-30 or 2027-06-30T12:00:00Z");
};
