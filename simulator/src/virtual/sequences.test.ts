/** Loads of several steps, which use the answers before them: calls, events and streams. */
import { describe, expect, test } from "vitest";
import { checkScenario } from "../scenario/load.ts";
import type { ClientGroupSpec, Scenario, StepSpec } from "../scenario/schema.ts";
import { parseProgram } from "./program.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual } from "./run.ts";

/** One holder at a time; who gives the lease back is told of in an event. */
const LEASE = `export default (agent) => {
  let holder = 0;
  let last = 0;
  agent.handle("take", () => {
    if (holder !== 0) throw new Error("taken");
    holder = ++last;
    return { token: holder };
  });
  agent.handle("echo", (params) => params);
  agent.handle("whose", (_, { sid }) => sid);
  agent.handle("give", ({ token }) => {
    if (token !== holder) throw new Error("not yours");
    holder = 0;
    agent.emit("other", {});
    agent.emit("free", { token });
    return {};
  });
};`;
const programs = new Map([["./lease.js", parseProgram(LEASE, "lease.js")]]);

/** Each run has secrets of its own. */
let seed = 1;

const play = async (
  steps: StepSpec[],
  more: Partial<ClientGroupSpec> = {},
  rest: Partial<Scenario> = {},
) => {
  const scenario: Scenario = {
    name: "sequences",
    duration: "1m",
    devices: [{ group: "g", count: 2, program: "./lease.js" }],
    clients: [{ devices: "g", count: 2, every: "10s", timeout: "5s", steps, ...more }],
    ...rest,
  };
  // The program is not a file; everything else is as it would be in one.
  checkScenario({ ...scenario, devices: [{ group: "g", count: 2, kind: "busy" }] }, ".");
  const given = rest.devices === undefined ? programs : loadPrograms(scenario, ".");
  const { report } = await runVirtual(scenario, { seed: seed++, programs: given });
  expect(report.stopped).toBeNull();
  const codes = report.failures.filter(({ code }) => code !== "HANDLER");
  return { ...report, codes: Object.fromEntries(codes.map(({ code, count }) => [code, count])) };
};

const TAKE: StepSpec = { call: "take", as: "lease", check: "answer.token > 0" };
const ECHO: StepSpec = { call: "echo", params: [1] };
const GIVE: StepSpec = { call: "give", params: { token: "$lease.token" } };

describe("a sequence", () => {
  test("uses earlier answers, alternates between clients, and waits for an event", async () => {
    const { ok, calls, kinds, thresholds } = await play(
      [
        TAKE,
        { client: 2, call: "take", fails: "REMOTE -32000" },
        {
          client: 2,
          call: "echo",
          params: ["$lease", "$$x"],
          check: "answer[0].token > 0",
          as: "e",
        },
        { call: "whose", as: "own" },
        { client: 2, call: "whose", check: "answer != own" },
        { call: "whose", check: "answer == own" },
        { call: "echo", params: { all: "$e" }, check: "answer.all[1] == '$x'" },
        { after: "500ms", ...GIVE },
        { event: "free", check: "answer.token == lease.token" },
      ],
      {},
      { thresholds: ["call.ok == 90", "p(99, call.latency_ms) < 400"] },
    );
    expect(thresholds.filter((one) => !one.ok)).toEqual([]);
    expect([ok, calls]).toEqual([true, { planned: 90, sent: 90, ok: 90, failed: 0 }]);
    expect(kinds).toMatchObject([{ kind: "g", calls: 90, ok: 90 }]);
  });

  test.each<[string, StepSpec[], string]>([
    ["a check does not hold", [{ ...ECHO, check: "answer[0] > 1" }, ECHO], "WRONG_ANSWER"],
    ["an answer is another one", [{ ...ECHO, expect: 1 }, ECHO], "WRONG_ANSWER"],
    ["what must fail succeeds", [{ ...ECHO, fails: "BUSY" }, ECHO], "WRONG_ANSWER"],
    ["an event does not come", [{ event: "free" }, ECHO], "TIMED_OUT"],
    ["it fails", [{ call: "give", params: { token: 7 } }, ECHO], "REMOTE -32000"],
  ])("ends when %s, and what is not made is counted", async (_, steps, code) => {
    const { ok, codes, calls, oracles } = await play(steps, { every: "30s" });
    const turns = calls.planned / 2;
    expect(turns).toBeGreaterThan(1);
    expect([ok, codes]).toEqual([false, { [code]: turns, NOT_MADE: turns }]);
    // The cause comes first: by it, a scenario is made smaller.
    const detail = oracles.find((one) => one.name === "answers")?.detail;
    expect(detail).toContain(`allows: ${code} ${turns}, NOT_MADE ${turns} (`);
    expect((await play(steps, { every: "30s" }, { allow: [{ rate: "100%" }] })).ok).toBe(true);
  });

  test("that has begun before the run's end also ends", async () => {
    const late = [TAKE, { after: "20s", ...GIVE }];
    const { ok, calls } = await play(late, { from: "55s", every: "5s" });
    expect([ok, calls.ok]).toEqual([true, 4]);
  });

  test("of a number of turns ends the run, whether they succeed or not", async () => {
    const twice = await play([TAKE, GIVE], { calls: 2, every: undefined }, { duration: "1h" });
    expect([twice.ok, twice.calls.ok, twice.phases[0]?.seconds]).toEqual([
      true,
      8,
      expect.any(Number),
    ]);
    expect(twice.phases[0]?.seconds).toBeLessThan(60);
    const failing = [{ call: "nothing" }, TAKE];
    const cut = await play(failing, { calls: 2, every: undefined }, { duration: "1h" });
    expect([cut.ok, cut.codes.NOT_MADE]).toEqual([false, 4]);
    expect(cut.phases[0]?.seconds).toBeLessThan(60);
  });

  test("of events and streams is a load of its own, which faults break", async () => {
    const steps: StepSpec[] = [
      { event: "busy.tick", check: "answer.n > 0" },
      { read: "busy.read", params: { size: 50_000 }, expect: { bytes: 50_000 } },
      { write: "busy.write", bytes: "40KB", expect: { bytes: 40 * 1024 } },
    ];
    const devices: Scenario["devices"] = [{ group: "g", count: 2, kind: "busy" }];
    const whole = await play(steps, { timeout: "20s" }, { devices });
    expect([whole.ok, whole.calls.ok]).toEqual([true, 30]);
    const faults: Scenario["faults"] = [
      { at: "20s", kind: "net.partition", devices: "g", for: "30s" },
    ];
    const broken = await play(steps, { timeout: "3s" }, { devices, faults });
    expect([broken.ok, Object.keys(broken.codes)]).toEqual([
      false,
      expect.arrayContaining(["TIMED_OUT", "NOT_MADE"]),
    ]);
  });
});
