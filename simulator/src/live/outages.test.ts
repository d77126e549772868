import { expect, test } from "vitest";
import { Outages } from "./outages.ts";

test("the end of the last of overlapping outages restores the power, with all changes", () => {
  const outages = new Outages();
  outages.begin(1);
  outages.begin(1);
  outages.begin(2);
  expect(outages.end(1, { relayToken: "a" })).toBe(null);
  expect(outages.end(2, {})).toEqual({});
  expect(outages.end(1, { agentToken: "b" })).toEqual({ relayToken: "a", agentToken: "b" });
  outages.begin(1);
  expect(outages.end(1, {})).toEqual({});
});
