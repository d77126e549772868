/**
 * `Date` of a virtual world: with the world's clock, and local time of the scenario's time zone,
 * whatever the machine's zone and language are.
 */

/** Of everything that depends on a language. */
export const LOCALE = "en-US";
const DAY_MS = 86_400_000;
/** Zones change at multiples of this. */
const STEP_MS = 900_000;
const FIELDS = [
  ...["FullYear", "Month", "Date", "Hours", "Minutes", "Seconds", "Milliseconds"],
  "Day", // cannot be set
] as const;

/** Whether a text that `Date.parse` reads names its zone, or is a date alone, which is in UTC. */
const NAMES_ZONE =
  /^[+-]?\d+(-\d\d){0,2}$|(Z|GMT|UTC?|[ECMP][SD]T|[+-]\d\d:?\d\d)(\s*\([^)]*\))?\s*$/i;

/** `wallMs`: the device's wall clock. */
export function makeDate(wallMs: () => number, timeZone: string): DateConstructor {
  const offset = offsetsOf(timeZone);
  /** Of two moments with the same local time the earlier; none: as if the zone had not changed. */
  const toUtc = (local: number): number => {
    const [before, after] = [offset(local - DAY_MS), offset(local + DAY_MS)];
    const isAfter = offset(local - before) !== before && offset(local - after) === after;
    return local - (isAfter ? after : before);
  };
  const parse = (text: string): number => {
    if (NAMES_ZONE.test(text)) return Date.parse(text);
    const utc = Date.parse(`${text}Z`);
    return toUtc(Number.isNaN(utc) ? Date.parse(`${text} UTC`) : utc);
  };
  const momentOf = (args: unknown[]): number => {
    if (args.length === 0) return wallMs();
    if (args.length > 1) return toUtc(Date.UTC(...(args as [number, number])));
    const [only] = args;
    if (only instanceof Date) return only.getTime();
    return typeof only === "string" ? parse(only) : new Date(only as number).getTime();
  };
  const local = (date: Date): Date => new Date(date.getTime() + offset(date.getTime()));
  class WorldDate extends Date {
    override getTimezoneOffset(): number {
      return -offset(this.getTime()) / 60_000;
    }
    override toString(): string {
      if (Number.isNaN(this.getTime())) return "Invalid Date";
      return `${this.toDateString()} ${this.toTimeString()}`;
    }
    override toDateString(): string {
      if (Number.isNaN(this.getTime())) return "Invalid Date";
      const [day, date, month, year] = local(this).toUTCString().split(/,? /);
      return `${day} ${month} ${date} ${year}`;
    }
    override toTimeString(): string {
      if (Number.isNaN(this.getTime())) return "Invalid Date";
      const [time] = local(this).toISOString().slice(-13).split(".");
      const minutes = -this.getTimezoneOffset();
      const at = Math.abs(minutes);
      const digits = `${Math.floor(at / 60) * 100 + (at % 60)}`.padStart(4, "0");
      const named = new Intl.DateTimeFormat(LOCALE, { timeZone, timeZoneName: "long" });
      const name = named.formatToParts(this).find(({ type }) => type === "timeZoneName")?.value;
      return `${time} GMT${minutes < 0 ? "-" : "+"}${digits} (${name})`;
    }
  }
  const { prototype } = WorldDate as unknown as { prototype: Record<string, unknown> };
  const define = (name: string, value: unknown): void => {
    Object.defineProperty(prototype, name, { value, configurable: true, writable: true });
  };
  type Methods = Record<string, (...args: unknown[]) => number>;
  for (const field of FIELDS) {
    define(`get${field}`, function (this: Date) {
      return (local(this) as unknown as Methods)[`getUTC${field}`]?.();
    });
    if (field === "Day") continue;
    define(`set${field}`, function (this: Date, ...args: unknown[]) {
      const moved = local(this);
      (moved as unknown as Methods)[`setUTC${field}`]?.(...args);
      return this.setTime(toUtc(moved.getTime()));
    });
  }
  for (const name of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"] as const) {
    define(name, function (this: Date, locales = LOCALE, options = {}) {
      return Date.prototype[name].call(this, locales, { timeZone, ...(options as object) });
    });
  }
  function WorldsDate(...args: unknown[]): string | Date {
    if (new.target === undefined) return new date().toString();
    return Reflect.construct(Date, [momentOf(args)], new.target) as Date;
  }
  const date = WorldsDate as unknown as DateConstructor;
  Object.defineProperty(date, "name", { value: "Date" });
  Object.assign(date, {
    prototype,
    now: wallMs,
    parse: (text: unknown) => parse(String(text)),
    UTC: Date.UTC,
  });
  define("constructor", date);
  return date;
}

/** What is to be added to a time in UTC, in milliseconds. */
function offsetsOf(timeZone: string): (atMs: number) => number {
  if (timeZone === "UTC") return () => 0;
  const numeric = "numeric";
  const format = new Intl.DateTimeFormat(LOCALE, {
    timeZone,
    hourCycle: "h23",
    year: numeric,
    month: numeric,
    day: numeric,
    hour: numeric,
    minute: numeric,
    second: numeric,
  });
  let known = Number.NaN;
  let last = 0;
  return (atMs) => {
    const step = Math.floor(atMs / STEP_MS);
    if (step === known || Number.isNaN(step)) return last;
    const parts = format.formatToParts(step * STEP_MS);
    const of = (type: string): number => Number(parts.find((part) => part.type === type)?.value);
    const local = Date.UTC(
      ...([of("year"), of("month") - 1, of("day")] as const),
      ...([of("hour"), of("minute"), of("second")] as const),
    );
    known = step;
    last = local - step * STEP_MS;
    return last;
  };
}
