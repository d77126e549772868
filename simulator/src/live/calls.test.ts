import { CallError } from "@blindrelay/client-sdk/node";
import { expect, test } from "vitest";
import { ExecutionOracle } from "../oracle/executions.ts";
import { LivenessOracle } from "../oracle/liveness.ts";
import { Measurements } from "../report/measure.ts";
import { makePlan, type PlannedLoad } from "../scenario/plan.ts";
import type { Scenario } from "../scenario/schema.ts";
import { LiveCalls } from "./calls.ts";
import type { Called } from "./clients.ts";
import { LiveOracles } from "./oracles.ts";

const SCENARIO: Scenario = {
  name: "open",
  duration: "1m",
  devices: [{ group: "a", count: 1, kind: "echo" }],
  clients: [{ devices: "a", call: "echo", every: "50s", timeout: "5m" }],
};

test("a call that the end of the run gives up had no outcome", () => {
  const plan = makePlan(SCENARIO, 1);
  const measured = new Measurements(() => 0);
  const violated: string[] = [];
  const violate = (what: string): void => void violated.push(what);
  const calls = new LiveCalls({
    plan,
    measured,
    devices: [{ id: "a-1" } as Called],
    oracles: new LiveOracles((reason) => violate(reason.message)),
    liveness: new LivenessOracle(violate),
    executions: new ExecutionOracle(violate),
    revoked: new Map(),
    wholeMs: () => 0,
    planMs: (atMs) => atMs,
    signal: new AbortController().signal,
  });
  const load = plan.loads[0] as PlannedLoad;
  const question = { method: "echo", params: {}, right: () => true };
  const giveUp = (code: "ABORTED" | "CLOSED"): void => {
    const open = calls.asked(0, "echo", false, null);
    const error = new CallError(code, "the run is over");
    calls.ended({ open, load, device: 0, question, fromMs: 1, error, result: null });
  };
  calls.end();
  giveUp("ABORTED");
  giveUp("CLOSED");
  measured.tally.endOpen();
  expect(measured.tally.failures(2).map(({ code, count }) => [code, count])).toEqual([
    ["OPEN_AT_END", 2],
  ]);
  expect(violated).toEqual([]);
});
