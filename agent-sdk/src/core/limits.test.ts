import { expect, it } from "vitest";
import { limitsOf, SMALL_AGENT_LIMITS } from "./limits.ts";

it("a start's own limits replace those of its runtime, from 1 to 65,536", () => {
  expect(limitsOf(SMALL_AGENT_LIMITS, undefined)).toEqual(SMALL_AGENT_LIMITS);
  const own = { maxSessions: 1, unheldBurst: 65_536 };
  expect(limitsOf(SMALL_AGENT_LIMITS, own)).toEqual({ ...SMALL_AGENT_LIMITS, ...own });
});

it.each(["maxSessions", "unheldPerSecond", "unheldBurst", "epochSessions"])(
  "a limit that makes no sense is refused by its name: %s",
  (name) => {
    for (const value of [0, -1, 1.5, 65_537, Number.NaN, "8", null, undefined]) {
      expect(() => limitsOf(SMALL_AGENT_LIMITS, { [name]: value })).toThrow(
        `limits: ${name} is a whole number from 1 to 65536`,
      );
    }
  },
);
