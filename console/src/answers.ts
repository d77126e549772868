/**
 * What an agent says of itself. A device may be hostile or broken: a member of another type is left
 * out, or drawing the page would fail, and with it go the secrets that only the page has.
 */
import type { LogAnswer, LogLine } from "@blindrelay/protocol";

/** An agent's own description; any part may be missing. */
export interface SystemInfo {
  readonly sdk_version?: string;
  readonly runtime?: string;
  readonly free_memory?: number;
  readonly uptime_s?: number;
  readonly methods?: readonly string[];
}

/** Longer than any device runs, and less than what a Date holds. */
const MAX_UPTIME_S = 1e10;

const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown): value is number => typeof value === "number";

export const readInfo = (value: unknown): SystemInfo => {
  const { sdk_version, runtime, free_memory, uptime_s, methods } = Object(value);
  return {
    ...(isText(sdk_version) && { sdk_version }),
    ...(isText(runtime) && { runtime }),
    ...(isNumber(free_memory) && { free_memory }),
    ...(isNumber(uptime_s) && Math.abs(uptime_s) < MAX_UPTIME_S && { uptime_s }),
    ...(Array.isArray(methods) && { methods: methods.filter(isText) }),
  };
};

/** Of whatever an agent sent as lines, those that are some. */
export const readLines = (value: unknown): LogLine[] => {
  const { lines } = Object(value);
  if (!Array.isArray(lines)) return [];
  return lines.filter((line): line is LogLine => {
    const { n, at_ms, level, text } = Object(line);
    return isNumber(n) && isNumber(at_ms) && isText(level) && isText(text);
  });
};

export const readLog = (value: unknown): LogAnswer => {
  const { boot, restart, dropped } = Object(value);
  const { reason, text } = Object(restart);
  return {
    boot: isNumber(boot) ? boot : 0,
    restart: { reason: isText(reason) ? reason : "first", text: isText(text) ? text : "" },
    dropped: isNumber(dropped) ? dropped : 0,
    lines: readLines(value),
  };
};
