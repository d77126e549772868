import { expect, it } from "vitest";
import { annotationsOf } from "./annotations.ts";
import type { Report } from "./report.ts";

const report = (more: Partial<Report>): Report =>
  ({
    scenario: { name: "rush: a, b", devices: [] },
    seed: 7,
    stopped: null,
    oracles: [{ name: "nonce", ok: true, detail: "fine" }],
    thresholds: [{ expression: "call.wrong == 0", ok: true, value: 0 }],
    ...more,
  }) as unknown as Report;

it("names each thing that is broken on a line of its own, and nothing of a run that is right", () => {
  expect(annotationsOf(report({}))).toEqual([]);
  const broken = report({
    oracles: [{ name: "answers", ok: false, detail: "100% wrong\nat 3 s" }],
    thresholds: [{ expression: "p(99, call.latency_ms) < 9", ok: false, value: 12, abort: false }],
  } as unknown as Partial<Report>);
  expect(annotationsOf(broken)).toEqual([
    "::error title=rush%3A a%2C b%2C seed 7::answers: 100%25 wrong%0Aat 3 s",
    "::error title=rush%3A a%2C b%2C seed 7::p(99, call.latency_ms) < 9 came to 12",
  ]);
});
