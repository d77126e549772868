/** The parts of a run that a scenario names. */
import type { Scenario } from "./schema.ts";
import { durationMs } from "./units.ts";

interface Phase {
  readonly name: string;
  /** Since the start of the run. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The scenario's own, and what is left after them; without any, the whole run as one. */
export const phasesOf = ({ phases = [] }: Scenario): Phase[] => {
  let fromMs = 0;
  const named = phases.map(({ name, until }) => {
    const phase = { name, fromMs, untilMs: Math.max(fromMs, durationMs(until)) };
    fromMs = phase.untilMs;
    return phase;
  });
  const name = named.length === 0 ? "run" : "rest";
  return [...named, { name, fromMs, untilMs: Number.POSITIVE_INFINITY }];
};
