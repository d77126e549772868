/** The first error in what a board prints. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FirstError } from "./first-error.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const toldOf = (lines: readonly string[]): string[] => {
  const told: string[] = [];
  const error = new FirstError((text) => told.push(text));
  for (const line of lines) error.receive(line);
  vi.advanceTimersByTime(1_000);
  return told;
};

it("is told once, with its innermost place", () => {
  const trace = ["    at deep (pump.ts:5:52)", "", "    ^", "    at pump.ts:12:3"];
  const lines = ["warm", "Uncaught Error: no (x)", ...trace, "Uncaught Error: later", ...trace];
  expect(toldOf(lines)).toEqual(["Uncaught Error: no (x) (pump.ts:5:52)"]);
  for (const frame of ["    at my folder/p.ts:5:52", "    at f (my folder/p.ts:5:52)"])
    expect(toldOf(["Uncaught no", frame])).toEqual(["Uncaught no (my folder/p.ts:5:52)"]);
  expect(toldOf(["Uncaught no", "    at :1:1"])).toEqual(["Uncaught no"]);
});

it("is told without a place where none follows, and not at all after stop", () => {
  expect(toldOf(["Uncaught text", "warm"])).toEqual(["Uncaught text"]);
  expect(toldOf(["warm", "    at deep (pump.ts:5:52)"])).toEqual([]);
  const told: string[] = [];
  const error = new FirstError((text) => told.push(text));
  error.receive("Uncaught text");
  error.stop();
  vi.advanceTimersByTime(1_000);
  expect(told).toEqual([]);
});
