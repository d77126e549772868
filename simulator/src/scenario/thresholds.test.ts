import { growth, LINEAR } from "@blindrelay/protocol/testing/growth";
import { expect, it } from "vitest";
import { parseThreshold } from "./thresholds.ts";

it.each([
  ["no value", ""],
  ["a value on two lines", "a\nb"],
])("a choice of calls of nothing but spaces and %s is refused in linear time", (_, value) => {
  const grown = growth(200, (n) => {
    const text = `call.sent{group=${" ".repeat(n)}${value}} < 1`;
    return () => expect(parseThreshold(text)).toHaveProperty("problem");
  });
  expect(grown).toBeLessThan(LINEAR);
});

it.each([
  ["rate(call.failed) < 5", "at most 1: write 5%"],
  ["rate(call.failed) < 101%", "at most 1"],
  ["rate(call.failed) < 2ms", "in %"],
  ["p(99, call.latency_ms) < 10%", "in ms, s, m, h"],
  ["max(relay.queue_bytes) < 1s", "in B, KB, MB, GB"],
  ["call.failed < 1%", "a number without a unit"],
  ["count(call.latency_ms) > 1s", "a number without a unit"],
  ["agents.online == 5B", "a number without a unit"],
])("%s, which holds or fails whatever is measured, is refused", (text, why) => {
  expect(parseThreshold(text)).toEqual({ problem: expect.stringContaining(why) });
});

it.each([
  ["rate(call.failed) <= 100%", 1],
  ["rate(call.failed) < 1", 1],
  ["max(call.latency_ms) < 2s", 2000],
  ["relay.queue_bytes < 1KB", 1024],
  ["call.sent == 12", 12],
])("%s is understood", (text, limit) => {
  expect(parseThreshold(text)).toMatchObject({ limit });
});
