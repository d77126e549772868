/**
 * One turn of a load at one device: a single question, or the steps of a sequence, of which each
 * may use the answers before it. A turn ends with the first step that is not as it must be.
 */
import { Script } from "node:vm";

import { getOrMake } from "../base/maps.ts";
import type { ClientGroupSpec, StepSpec } from "../scenario/schema.ts";
import { filled, parseExpression, STEP_KINDS } from "../scenario/steps.ts";
import { durationMs, sizeOf } from "../scenario/units.ts";
import type { Question } from "./kinds.ts";
import type { Questions } from "./questions.ts";
import { sameJson } from "./same-json.ts";

export interface TurnWorld {
  wait(ms: number, fn: () => void): void;
  /** Asks; `ended` is told the answer, and whether it is as it must be. */
  ask(question: Question, ended: (answer: unknown, isRight: boolean) => void): void;
}

/** `done` is told how many steps were not reached. */
export function playTurn(
  { steps, ...call }: ClientGroupSpec,
  questions: Questions,
  world: TurnWorld,
  done: (skipped: number) => void,
): void {
  if (steps === undefined) {
    world.ask(questions.next(call), () => done(0));
    return;
  }
  const answers = new Map<string, unknown>();
  const play = (n: number): void => {
    const step = steps[n];
    if (step === undefined) return done(0);
    const begin = (): void =>
      world.ask(questionOf(step, answers), (answer, isRight) => {
        if (step.as !== undefined) answers.set(step.as, answer);
        if (isRight) play(n + 1);
        else done(steps.length - n - 1);
      });
    if (step.after === undefined) begin();
    else world.wait(durationMs(step.after), begin);
  };
  play(0);
}

function questionOf(step: StepSpec, answers: ReadonlyMap<string, unknown>): Question {
  const { params, expect, check, fails, client = 1, bytes, timeout } = step;
  const kind = STEP_KINDS.find((one) => step[one] !== undefined) ?? "call";
  return {
    kind,
    method: step[kind] as string,
    params: filled(params, (text) => evaluate(text, answers)),
    client: client - 1,
    ...(bytes === undefined ? {} : { bytes: sizeOf(bytes) }),
    ...(timeout === undefined ? {} : { timeoutMs: durationMs(timeout) }),
    ...(fails === undefined ? {} : { fails }),
    right: (answer) =>
      (expect === undefined || sameJson(answer, expect)) &&
      (check === undefined || Boolean(evaluate(check, new Map([...answers, ["answer", answer]])))),
  };
}

const compile = (source: string): Expression["of"] =>
  new Script(`"use strict"; (${source}\n)`).runInThisContext();

/** By their text; null: it is checked before it gets here. */
const compiled = new Map<string, Expression | null>();

interface Expression {
  readonly names: readonly string[];
  readonly of: (...values: unknown[]) => unknown;
}

/** Undefined for what an answer lacks, such as a member of nothing. */
function evaluate(text: string, answers: ReadonlyMap<string, unknown>): unknown {
  const known = getOrMake(compiled, text, () => {
    const parsed = parseExpression(text);
    return "problem" in parsed ? null : { names: parsed.names, of: compile(parsed.source) };
  });
  try {
    return known?.of(...known.names.map((name) => answers.get(name)));
  } catch {
    return undefined;
  }
}
