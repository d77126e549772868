/** What breaks a run: calls that fail, unless its scenario allows it. */
import { describe, expect, test } from "vitest";
import { checkScenario } from "../scenario/load.ts";
import type { Scenario } from "../scenario/schema.ts";
import { parseProgram } from "./program.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual } from "./run.ts";

const PROGRAM = `export default (agent) => {
  let asked = 0;
  agent.handle("one", () => 1);
  agent.handle("state", () => ({ at: { b: 2, a: [1, 2] }, on: true }));
  let told = 0;
  agent.handle("told", () => {
    if (++told % 3 === 0) return told;
    throw Object.assign(new Error("no"), { code: told % 3 });
  });
  agent.handle("odd", () => ++asked % 2 === 1 ? 1 : new Promise(() => {}));
};`;
const programs = new Map([["./p.js", parseProgram(PROGRAM, "p.js")]]);

const play = async (more: Partial<Scenario>) => {
  const scenario: Scenario = {
    name: "answers",
    duration: "1m",
    devices: [{ group: "g", count: 5, program: "./p.js" }],
    ...more,
  };
  const isOurs = scenario.devices.every(({ program }) => program === "./p.js");
  const loaded = isOurs ? programs : loadPrograms(scenario, ".");
  const { report } = await runVirtual(scenario, { seed: 1, programs: loaded });
  expect(report.stopped).toBeNull();
  const codes = report.failures.map(({ code, count }) => [code, count] as const);
  const broken = report.oracles.filter(({ ok }) => !ok).map(({ name }) => name);
  return { ...report, codes: Object.fromEntries(codes), broken };
};

const wrong = [{ devices: "g", call: "one", every: "5s", expect: 2 }];
const typo = [{ devices: "g", call: "oen", every: "5s" }];
const hangs = [{ devices: "g", call: "odd", every: "5s", timeout: "4s" }];

describe("a run", () => {
  test.each([
    ["wrong answers", wrong, "WRONG_ANSWER"],
    ["a method that does not exist", typo, "REMOTE -32601"],
    ["calls that are not answered", hangs, "TIMED_OUT"],
  ])("is broken by %s, unless they are allowed by code or as a share", async (_, clients, code) => {
    const plain = await play({ clients });
    expect([plain.ok, plain.broken]).toEqual([false, ["answers"]]);
    expect(plain.codes[code]).toBeGreaterThan(20);
    const rate = `${Math.ceil((100 * (plain.codes[code] as number)) / plain.calls.planned)}%`;
    for (const allow of [[{ code }], [{ rate }], [{ code, rate }], [{ code: "BUSY" }, { rate }]]) {
      expect((await play({ clients, allow })).ok).toBe(true);
    }
    for (const allow of [[{ code: "BUSY" }], [{ rate: "10%" }], [{ code, rate: "10%" }]]) {
      expect((await play({ clients, allow })).ok).toBe(false);
    }
  });

  test("tells what the first call of each failure went through, in plaintext", async () => {
    const scenario: Scenario = {
      ...{ name: "timelines", duration: "1m", clients: hangs },
      devices: [{ group: "g", count: 5, program: "./p.js" }],
      faults: [{ at: "30s", kind: "net.cut", devices: "g", for: "20s" }],
    };
    const { report } = await runVirtual(scenario, { seed: 77, programs, keptEntries: 10_000 });
    const timelines = report.timelines ?? [];
    const codes = timelines.map(({ call }) => call.split(":")[0]);
    expect(codes).toEqual(expect.arrayContaining(["AGENT_OFFLINE", "TIMED_OUT"]));
    expect(new Set(codes).size).toBe(codes.length);
    const hung = timelines.find(({ call }) => call.startsWith("TIMED_OUT"));
    const [, id] = /^TIMED_OUT: odd of clients-1\/1 at (g-0000[1-5])$/.exec(hung?.call ?? "") ?? [];
    const [first, second, ...rest] = hung?.lines ?? [];
    expect(first).toMatch(/ up {8}clients-1\/1#\d {2}{"jsonrpc":"2.0",.*"method":"odd"}/);
    expect(second).toMatch(new RegExp(`down {6}${id}#\\d {2}{"jsonrpc":"2.0",.*"method":"odd"}`));
    expect(rest).toEqual([expect.stringMatching(`outcome   clients-1/1 ${id}  \\d+ TIMED_OUT$`)]);
  });

  test("is broken by calls that had to wait for others until its end", async () => {
    const clients = [{ devices: "g", call: "odd", every: "2s", timeout: "20s" }];
    const late = await play({ clients, allow: [{ code: "TIMED_OUT" }] });
    expect([late.ok, Object.keys(late.codes)]).toEqual([false, ["NOT_MADE", "TIMED_OUT"]]);
    expect(late.calls.failed).toBe(Object.values(late.codes).reduce((sum, n) => sum + n, 0));
    const allow = [{ code: "TIMED_OUT" }, { code: "NOT_MADE" }];
    expect((await play({ clients, allow })).ok).toBe(true);
  });

  test("is allowed a share of failures once, whatever codes it covers", async () => {
    const clients = [{ devices: "g", call: "told", every: "5s" }];
    const all = await play({ clients, allow: [{ code: "REMOTE" }] });
    expect(all.ok).toBe(true);
    const share = (code: string): number =>
      Math.ceil((100 * (all.codes[code] as number)) / all.calls.planned);
    const [one, two] = [share("REMOTE 1"), share("REMOTE 2")];
    const allowed = async (...allow: { code: string; rate: string }[]) =>
      (await play({ clients, allow })).broken;
    expect(await allowed({ code: "REMOTE", rate: `${one}%` })).toEqual(["answers"]);
    expect(await allowed({ code: "REMOTE", rate: `${one + two}%` })).toEqual([]);
    // The narrow one comes first, wherever it stands.
    const narrow = { code: "REMOTE 1", rate: `${one}%` };
    expect(await allowed({ code: "REMOTE", rate: `${two}%` }, narrow)).toEqual([]);
  });

  test("takes an answer whose members come in another order for what it expects", async () => {
    const asked = { devices: "g", every: "5s" };
    const right = { on: true, at: { a: [1, 2], b: 2 } };
    for (const [expect_, broken] of [
      [right, []],
      [{ ...right, at: { a: [2, 1], b: 2 } }, ["answers"]],
      [{ ...right, more: 1 }, ["answers"]],
    ]) {
      const plain = [{ ...asked, call: "state", expect: expect_ }];
      expect((await play({ clients: plain })).broken).toEqual(broken);
      const steps = [{ ...asked, steps: [{ call: "state", expect: expect_ }] }];
      expect((await play({ clients: steps })).broken).toEqual(broken);
    }
  });

  test("is allowed exactly the share that its scenario says", async () => {
    const devices = [{ group: "g", count: 1, kind: "echo" as const }];
    const clients = [
      { name: "bad", devices: "g", call: "echo", calls: 29, params: {}, expect: 1 },
      { name: "good", devices: "g", call: "echo", calls: 71, params: {} },
    ];
    expect((await play({ devices, clients, allow: [{ rate: "29%" }] })).broken).toEqual([]);
    expect((await play({ devices, clients, allow: [{ rate: "28.9%" }] })).broken).toHaveLength(1);
  });

  test("is broken by a call that has no outcome a minute after its end", async () => {
    const clients = [{ devices: "g", call: "odd", every: "45s", from: "0s", timeout: "10m" }];
    const open = await play({ clients, allow: [{ code: "NOT_MADE" }, { code: "AGENT_OFFLINE" }] });
    expect([open.ok, open.codes.OPEN_AT_END]).toEqual([false, expect.any(Number)]);
  });

  test("counts a failed call in its percentiles until it failed", async () => {
    const { latency_ms, thresholds } = await play({
      clients: hangs,
      thresholds: ["p(99, call.latency_ms) < 400"],
    });
    expect(thresholds[0]?.ok).toBe(false);
    expect(latency_ms).toMatchObject({ p50: expect.any(Number), p99: expect.closeTo(4000, -1) });
  });

  test("judges a threshold by the calls of one group, of one method, or of both", async () => {
    const { thresholds } = await play({
      devices: [
        { group: "g", count: 5, program: "./p.js" },
        { group: "h", count: 2, program: "./p.js" },
      ],
      clients: [
        ...hangs,
        { devices: "h", call: "one", calls: 3 },
        { devices: "g", call: "one", calls: 2, expect: 2 },
      ],
      thresholds: [
        "call.ok{group=h} == 6",
        "call.sent{method=one} == 16",
        "call.wrong{ group = g , method = one } == 10",
        "rate(call.failed{group=h}) == 0",
        "rate(call.failed{method=odd}) > 0.4",
        "p(99, call.latency_ms{group=h,method=one}) < 1000",
        "max(call.latency_ms{method=odd}) >= 4s",
        "count(call.latency_ms{group=h}) == 6",
        // Of no calls nothing is known, so nothing holds.
        "call.failed{method=oen} == 0",
        "count(call.latency_ms{group=h,method=odd}) == 0",
      ],
    });
    expect(thresholds.filter(({ ok }) => !ok).map(({ value }) => value)).toEqual([null, null]);
  });

  test("judges a threshold by the calls that begin in one phase, of a rate that grows and falls", async () => {
    const rates = { call: "one", expect: 1, from: "10s" };
    const { ok, thresholds } = await play({
      duration: "50s",
      clients: [
        { devices: "g", ...rates, rate: "0.5/s", to_rate: "3/s", until: "40s" },
        { devices: "g", ...rates, rate: "2/s", to_rate: "0/s", until: "20s" },
      ],
      phases: [
        { name: "warm-up", until: "20s" },
        { name: "load", until: "40s" },
      ],
      thresholds: [
        "call.sent == 62",
        "call.sent{phase=warm-up} >= 18",
        "call.sent{phase=warm-up} <= 20",
        "call.ok{phase=load,method=one} >= 42",
        "max(call.latency_ms{phase=load}) < 1000",
        "rate(call.failed{phase=load}) == 0",
        "call.sent{phase=rest} == 0",
      ],
    });
    expect(
      thresholds.filter((one) => !one.ok).map(({ expression, value }) => [expression, value]),
    ).toEqual([
      // Of no calls nothing is known.
      ["call.sent{phase=rest} == 0", null],
    ]);
    expect(ok).toBe(false);
  });

  test("of a number of calls to each device ends with the last of them", async () => {
    const clients = [{ devices: "g", call: "one", calls: 7, at_once: 2, expect: 1 }];
    const counted = await play({ duration: "1h", clients });
    expect([counted.ok, counted.calls]).toEqual([
      true,
      { planned: 35, sent: 35, ok: 35, failed: 0 },
    ]);
    expect(counted.series.at(-1)?.at_s).toBeLessThan(10);
  });

  test("gets right answers from one device that several groups of clients ask", async () => {
    for (const kind of ["sensor", "valve"] as const) {
      const group = { group: kind, count: 1, kind };
      const clients = ["a", "b", "c"].map((name) => ({ name, devices: kind, rate: "2/s" }));
      expect((await play({ devices: [group], clients })).codes).toEqual({});
    }
  });
});

describe("a scenario", () => {
  const problem = (more: object): string => {
    const devices = [{ group: "g", count: 5, kind: "echo", start: { over: "1s" } }];
    const scenario = { name: "late", duration: "10s", devices, ...more };
    try {
      checkScenario(scenario, ".");
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };

  test("whose calls cannot begin before it ends is refused", () => {
    expect(problem({ clients: [{ name: "c", devices: "g", every: "1s" }] })).toMatch(
      /^scenario:1:1: c: calls begin at 10\.\d+s, the run ends at 10s: by default/,
    );
    const few = [{ devices: "g", rate: "1/h", from: "1s" }];
    expect(problem({ clients: few })).toMatch(/calls begin at 1s, .* none is due at 1\/h/);
    expect(problem({ clients: [{ devices: "g", every: "1s", from: "2s" }] })).toBe("");
  });

  test("allows only what exists", () => {
    expect(problem({ allow: [{ code: "TIMEDOUT" }] })).toMatch(/no call ends so.*TIMED_OUT/);
    expect(problem({ allow: [{}] })).toMatch(/scenario:1:1/);
    expect(problem({ allow: [{ code: "REMOTE -32601", rate: "5%" }] })).toBe("");
    expect(problem({ allow: [{ code: "PROGRAM" }] })).toBe("");
    expect(problem({ allow: [{ code: "PROGRAM", rate: "5%" }] })).toMatch(/is not how calls end/);
    expect(problem({ timezone: "Europe/Berln" })).toMatch(/there is no time zone Europe\/Berln/);
    expect(problem({ start: "2026-13-01T00:00:00Z" })).toMatch(/there is no such time/);
  });
});
