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
