/**
 * `serial.signals`: control lines, as one step or as a timed sequence that runs here, at the port,
 * so that no network is between its steps (a chip that is reset into its boot loader has
 * milliseconds).
 */
import type { TimerPort } from "../ports.ts";
import type { ControlLines, OpenPort } from "./port.ts";

const MAX_STEPS = 32;
const MAX_MS = 10_000;
const LINES = ["dtr", "rts", "break"];

interface SignalStep extends ControlLines {
  /** Before it. */
  readonly afterMs: number;
}

const readStep = (step: unknown, extra: readonly string[]): SignalStep => {
  if (typeof step !== "object" || step === null || Array.isArray(step)) {
    throw new Error("a step is an object with dtr, rts, break and after_ms");
  }
  const lines: Record<string, boolean> = {};
  let afterMs = 0;
  for (const [name, value] of Object.entries(step)) {
    if (extra.includes(name)) continue;
    if (name === "after_ms") {
      if (typeof value !== "number" || !(value >= 0 && value <= MAX_MS)) {
        throw new Error(`after_ms is a number of milliseconds from 0 to ${MAX_MS}`);
      }
      afterMs = value;
      continue;
    }
    if (!LINES.includes(name) || typeof value !== "boolean") {
      throw new Error("signals are dtr, rts and break, each true or false");
    }
    lines[name] = value;
  }
  return { ...lines, afterMs };
};

/** Throws an Error for invalid params. */
export const readSignals = (params: unknown): readonly SignalStep[] => {
  const { steps } = (params ?? {}) as { steps?: unknown };
  if (steps === undefined) return [readStep(params ?? {}, ["port"])];
  const more = Object.keys(params as object).find((name) => !["port", "steps"].includes(name));
  if (more !== undefined) throw new Error(`${more} belongs into a step`);
  if (!Array.isArray(steps) || steps.length > MAX_STEPS) {
    throw new Error(`steps is a list of at most ${MAX_STEPS}`);
  }
  const read = steps.map((step) => readStep(step, []));
  const totalMs = read.reduce((sum, { afterMs }) => sum + afterMs, 0);
  if (totalMs > MAX_MS) throw new Error(`the steps take ${totalMs} ms, at most ${MAX_MS}`);
  return read;
};

/** Resolves after the last step. Rejects with a PortError. */
export const runSignals = async (
  port: OpenPort,
  steps: readonly SignalStep[],
  timer: TimerPort,
): Promise<void> => {
  // From the instants, not from step to step, so that the errors of timers do not add up.
  let at = timer.now();
  for (const { afterMs, ...lines } of steps) {
    at += afterMs;
    const waitMs = at - timer.now();
    if (afterMs > 0 && waitMs > 0) {
      await new Promise<void>((resolve) => timer.set(waitMs, resolve));
    }
    if (Object.keys(lines).length > 0) await port.control(lines);
  }
};
