import { expect, test } from "vitest";
import { type CallEnd, ExecutionOracle } from "./executions.ts";

const compare = (ends: CallEnd[], executed: number, isIdempotent = false): string[] => {
  const violations: string[] = [];
  const oracle = new ExecutionOracle((what) => violations.push(what));
  for (const end of ends) oracle.ended("pump-1", end, isIdempotent);
  oracle.compare("pump-1", executed);
  return violations;
};

test.each([
  ["as many as were answered", ["answered", "answered"], 2],
  ["none of those that may be retried", ["answered", "retryable"], 1],
  ["perhaps those of unknown outcome", ["answered", "unknown", "unknown"], 2],
  ["nothing if nobody called", [], 0],
] as [string, CallEnd[], number][])("a device executes %s", (_what, ends, executed) => {
  expect(compare(ends, executed)).toEqual([]);
});

test.each([
  ["was answered but never executed", ["answered", "answered"], 1],
  ["was answered and executed twice", ["answered"], 2],
  ["may be retried and was executed", ["answered", "retryable"], 2],
  ["nobody made was executed", [], 1],
] as [string, CallEnd[], number][])("a call that %s is detected", (_what, ends, executed) => {
  expect(compare(ends, executed)).toHaveLength(1);
});

test("calls that may be repeated are executed once or more often", () => {
  expect(compare(["answered"], 3, true)).toEqual([]);
  expect(compare(["answered"], 0, true)).toHaveLength(1);
});
