/**
 * The sequences of a load: calls, events and streams in order, each with a check of its answer,
 * which later ones may use. A text in `params` that begins with `$` is an expression over the
 * answers that earlier steps have named (`as`); `$$` begins a text that begins with `$`.
 */
import { parseInvariant } from "./invariants.ts";
import type { StepSpec } from "./schema.ts";

export const STEP_KINDS = ["call", "event", "read", "write"] as const;
/** What a check calls the answer of its own step. */
const ANSWER = "answer";

type Report = (path: readonly (string | number)[], message: string) => void;

/** Reports the mistakes that a schema cannot express. `clients`: how many there are. */
export function checkSteps(steps: readonly StepSpec[], clients: number, report: Report): void {
  const names: string[] = [];
  for (const [i, step] of steps.entries()) {
    const [kind, second] = STEP_KINDS.filter((one) => step[one] !== undefined);
    if (kind === undefined) report([i], `what? give one of ${STEP_KINDS.join(", ")}`);
    else if (second !== undefined) report([i, second], `a step is either ${kind} or ${second}`);
    if ((kind === "write") !== (step.bytes !== undefined)) {
      report([i], kind === "write" ? "how much? give bytes" : "bytes goes with write");
    }
    if (step.client !== undefined && step.client > clients) {
      report([i, "client"], `there are ${clients} clients in this group (count: …)`);
    }
    const { params } = step;
    if (params !== undefined && (typeof params !== "object" || params === null)) {
      report([i, "params"], "must be an object or an array");
    }
    if (kind === "event" && params !== undefined) report([i, "params"], "an event has none");
    for (const text of expressionsIn(params)) {
      const problem = problemOf(text, names);
      // A price, perhaps, and no expression at all.
      if (problem !== null)
        report([i, "params"], `"$${text}": ${problem}; for the text itself, write "$$${text}"`);
    }
    if (step.check !== undefined) {
      const problem = problemOf(step.check, [...names, ANSWER]);
      if (problem !== null) report([i, "check"], problem);
    }
    if (step.fails !== undefined) {
      for (const key of ["expect", "check", "as"] as const)
        if (step[key] !== undefined) report([i, key], "what fails has no answer");
    }
    if (step.as === ANSWER) report([i, "as"], `${ANSWER} is what a check calls its own answer`);
    if (step.as !== undefined) {
      const isWord = "problem" in parseExpression(step.as) || /^(eval|arguments)$/.test(step.as);
      if (isWord)
        report([i, "as"], `${step.as} is a word of JavaScript's own: choose another name`);
      names.push(step.as);
    }
  }
}

function problemOf(text: string, known: readonly string[]): string | null {
  const parsed = parseExpression(text);
  if ("problem" in parsed) return parsed.problem;
  const unknown = parsed.names.find((name) => !known.includes(name));
  if (unknown === undefined) return null;
  return `no earlier step has an answer named ${unknown} (as: ${unknown})`;
}

/** An expression's names, and the function of them. */
export function parseExpression(text: string): ReturnType<typeof parseInvariant> {
  const parsed = parseInvariant(text, "a step answers");
  if ("problem" in parsed || parsed.names.length > 0) return parsed;
  return { problem: "an expression over answers, not a function" };
}

/** Whether a text of `params` is an expression. */
const isExpression = (value: unknown): value is string =>
  typeof value === "string" && value.startsWith("$") && !value.startsWith("$$");

function expressionsIn(value: unknown): string[] {
  if (isExpression(value)) return [value.slice(1)];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(expressionsIn);
}

/** The value with its expressions replaced. */
export function filled(value: unknown, evaluate: (expression: string) => unknown): unknown {
  if (isExpression(value)) return evaluate(value.slice(1));
  if (typeof value === "string" && value.startsWith("$$")) return value.slice(1);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => filled(one, evaluate));
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, filled(one, evaluate)]),
  );
}
