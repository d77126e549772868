/** A scenario's thresholds, as a run judges them: while it plays, and in its report. */

import { phasesOf } from "../scenario/phases.ts";
import type { Scenario } from "../scenario/schema.ts";
import {
  evaluate,
  type Measured,
  type ParsedThreshold,
  parseThreshold,
} from "../scenario/thresholds.ts";
import { durationMs } from "../scenario/units.ts";
import type { Report } from "./report.ts";

export interface Threshold {
  parsed: ParsedThreshold;
  text: string;
  abort: boolean;
  afterUs: number;
  /** When the calls begin that it is about. */
  fromUs: number;
  untilUs: number;
}

/** Of a checked scenario. */
export function thresholdsOf(scenario: Scenario): Threshold[] {
  const phases = phasesOf(scenario);
  return (scenario.thresholds ?? []).map((one) => {
    const {
      expression: text,
      abort = false,
      after = "0s",
    } = typeof one === "string" ? { expression: one } : one;
    const parsed = parseThreshold(text);
    if ("problem" in parsed) throw new Error(parsed.problem);
    const phase = phases.find(({ name }) => name === parsed.where?.phase);
    const { fromMs = 0, untilMs = Number.POSITIVE_INFINITY } = phase ?? {};
    const during = { fromUs: fromMs * 1000, untilUs: untilMs * 1000 };
    return { parsed, text, abort, afterUs: durationMs(after) * 1000, ...during };
  });
}

/** Why a run has to end after `nowUs` of it: the first aborting threshold that is missed. */
export function reasonToAbort(
  thresholds: readonly Threshold[],
  nowUs: number,
  measured: Measured,
): string | null {
  const missed = thresholds.find(({ abort, afterUs, parsed }) => {
    if (!abort || nowUs < afterUs) return false;
    const { value, ok } = evaluate(parsed, measured);
    return value !== null && !ok; // what is not measured yet is judged at the end
  });
  return missed === undefined ? null : `the threshold ${missed.text} was broken`;
}

/** Each threshold at the end of a run. */
export const judge = (thresholds: readonly Threshold[], measured: Measured): Report["thresholds"] =>
  thresholds.map(({ parsed, text }) => ({ expression: text, ...evaluate(parsed, measured) }));
