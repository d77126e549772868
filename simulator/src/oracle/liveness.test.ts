import { expect, test } from "vitest";
import { LivenessOracle } from "./liveness.ts";

test("a call that an agent's limit of sessions cost is no fault of anybody, another one is", () => {
  const said: string[] = [];
  const oracle = new LivenessOracle((what) => said.push(what));
  const ended = "a call ended with OUTCOME_UNKNOWN: outcome of add unknown";
  oracle.callFailed(0, "OUTCOME_UNKNOWN", `${ended}: the agent closed the session to make room`);
  expect(said).toEqual([]);
  oracle.callFailed(0, "OUTCOME_UNKNOWN", `${ended}: the agent restarted`);
  expect(said).toEqual([`without any fault, ${ended}: the agent restarted`]);
});

test("a relay that comes back only after its fault makes what went before it no quiet time", () => {
  const oracle = new LivenessOracle(() => {});
  oracle.faultBegins(18_000_000);
  oracle.faultEnds(85_000_000);
  const playUs = 100_390_000;
  expect(oracle.isQuiet(playUs)).toBe(true);
  oracle.disturbed(101_400_000);
  expect(oracle.isQuiet(playUs)).toBe(false);
  expect(oracle.isQuiet(111_400_000)).toBe(true);
});
