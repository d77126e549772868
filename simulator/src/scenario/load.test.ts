import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkScenario, loadScenario } from "./load.ts";
import type { ScenarioError } from "./problems.ts";

const GOOD = `name: two rooms
duration: 10m
devices:
  - { group: pumps, count: 5, program: ./pump.js }
  - { group: lamps, count: 1, kind: echo }
clients:
  - { count: 2, devices: pumps, call: pump.state, every: 60s }
faults:
  - { at: 2m, kind: relay.restart }
thresholds:
  - p(99, call.latency_ms) < 2000
  - { expression: agents.online == 6, abort: true, after: 30s }
`;

const CALL = "call: pump.state";

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "blindrelay-test-"));
  await writeFile(join(folder, "pump.js"), "export default () => {};");
});

afterAll(() => rm(folder, { recursive: true, force: true }));

async function problems(text: string | Buffer, name = "scenario.yaml"): Promise<string[]> {
  const file = join(folder, name);
  await writeFile(file, text);
  try {
    await loadScenario(file);
    return [];
  } catch (error) {
    const found = (error as ScenarioError).problems;
    return found.map(({ line, column, message }) => `${line}:${column} ${message}`);
  }
}

describe("a scenario", () => {
  test("is read from YAML", async () => {
    expect(await problems(GOOD)).toEqual([]);
    const { scenario } = await loadScenario(join(folder, "scenario.yaml"));
    expect(scenario.devices[0]).toMatchObject({ group: "pumps", count: 5 });
  });

  test("is no device program and no folder, and an error in another file keeps its own position", async () => {
    expect(await problems("export default () => {};", "program.js")).toEqual([
      "1:1 is a device program: run it with --program, or name it in a scenario",
    ]);
    const [missing] = await problems('import "./none.ts"; export default {};', "imports.ts");
    expect(missing).toMatch(/^1:1 Cannot find module/);
    await mkdir(join(folder, "folder.yaml"));
    await expect(loadScenario(join(folder, "folder.yaml"))).rejects.toThrow("1:1: EISDIR");
  });

  test.each(["utf16.yaml", "utf16.js", "utf16.mts"])(
    "in another encoding is reported as that: %s",
    async (name) => {
      const text = name.endsWith("yaml") ? GOOD : "export default {};";
      const wide = Buffer.from(`\ufeff${text}`, "utf16le");
      expect(await problems(wide, name)).toEqual(["1:1 UTF-16 text; save it as UTF-8"]);
      const narrow = Buffer.from(`${text} // \u00fc\n`, "latin1");
      expect(await problems(narrow, name)).toEqual([expect.stringMatching(/^1:1 not UTF-8 text/)]);
    },
  );

  test("is read from TypeScript, with the positions of its mistakes", async () => {
    const text = `interface Unused { x: number }
const scenario = {
  name: "typed",
  duration: "5m",
  devices: [{ group: "pumps", count: 0, kind: "echo" }],
};
export default scenario;
`;
    expect(await problems(text, "typed.ts")).toEqual(["5:38 count must be >= 1"]);
  });

  test.each([
    ["a wrong unit", ["10m", "10 minutes"], "2:11 duration must be a duration with its unit"],
    [
      "an unknown key",
      ["count: 2,", "cuont: 2,"],
      '7:7 unknown key "cuont" (did you mean "count"?)',
    ],
    [
      "a share above 100%",
      ["relay.restart", "net.cut, share: 110%"],
      "9:37 share must be a share from 0% to 100%",
    ],
    [
      "a group's second definition",
      ["group: lamps", "group: pumps"],
      "5:14 this group was named before",
    ],
    ["an alias without its anchor", ["10m", "*long"], "1:1 Unresolved alias"],
    ["a missing key", ["group: lamps, ", ""], '5:5 "group" is missing'],
    [
      "an unknown kind of fault",
      ["relay.restart", "relay.restrat"],
      '9:21 unknown kind of fault (did you mean "relay.restart"?)',
    ],
    ["a fault without a field", ["relay.restart", "net.delay"], '9:5 "for" is missing'],
    [
      "an unknown group",
      ["devices: pumps,", "devices: pump,"],
      '7:26 unknown group (did you mean "pumps"?)',
    ],
    ["a missing file", ["./pump.js", "./pmup.js"], "4:40 there is no file ./pmup.js"],
    [
      "a threshold on the calls of an unknown phase",
      ["p(99, call.latency_ms)", "p(99, call.latency_ms{phase=load})"],
      '11:5 there is no phase "load"; there are run',
    ],
    [
      "a phase that ends before it begins",
      ["thresholds:", "phases: [{ name: a, until: 5m }, { name: b, until: 5m }]\nthresholds:"],
      "10:52 must be after the end of the phase before it",
    ],
    [
      "two phases of one name",
      ["thresholds:", "phases: [{ name: a, until: 1m }, { name: a, until: 5m }]\nthresholds:"],
      "10:42 this name was used before",
    ],
    [
      "a threshold that holds whatever is measured",
      ["p(99, call.latency_ms) < 2000", "rate(call.failed) < 5"],
      "11:5 a rate is a share of calls, at most 1: write 5%",
    ],
    [
      "a rate to grow to, and none to grow from",
      ["every: 60s", "every: 60s, to_rate: 5/s"],
      "7:72 goes with rate",
    ],
    [
      "a threshold on the calls of an unknown group",
      ["p(99, call.latency_ms)", "p(99, call.latency_ms{group=pump})"],
      '11:5 unknown group (did you mean "pumps"?)',
    ],
    [
      "a threshold on calls chosen by something else",
      ["p(99, call.latency_ms)", "p(99, call.latency_ms{group=pumps,kind=echo})"],
      "11:5 not a choice of calls: {group=pumps,kind=echo}; write one like {group=pumps}",
    ],
    [
      "a threshold on the calls of what is no figure of calls",
      ["agents.online == 6", "'agents.online{group=pumps} == 6'"],
      "agents.online is no figure of calls: omit {group=pumps}",
    ],
    [
      "an invalid threshold",
      ["p(99, call.latency_ms)", "p(call.latency_ms)"],
      "11:5 p() needs a percentile",
    ],
    [
      "an unknown metric",
      ["agents.online", "agents.onlnie"],
      '12:19 unknown metric "agents.onlnie"',
    ],
    ["no rate", [", every: 60s", ""], "7:5 how often?"],
    [
      "more calls than can be planned",
      ["every: 60s", "rate: 10000/s"],
      "7:57 5900000 calls; at most 5000000 in an open loop",
    ],
    ["a number beyond all bounds", ["10m", "1234567890d"], "2:11 duration must be a duration"],
    ["a timeout of nothing", ["every: 60s", "every: 60s, timeout: 0s"], "7:72 must be from 1ms"],
    ["one that no SDK takes", ["every: 60s", "every: 60s, timeout: 25d"], "7:72 must be from 1ms"],
    [
      "a step's timeout of nothing",
      [CALL, "steps: [{ call: a, timeout: 0s }]"],
      "7:61 must be from 1ms to 24d 20h",
    ],
    [
      "a bandwidth of nothing",
      ["relay.restart", "net.bandwidth, for: 1s, bandwidth: 0.0KB/s"],
      "9:56 bandwidth must be a bandwidth above 0",
    ],
    [
      "a day that does not exist",
      ["10m", "10m\nstart: 2026-02-30T12:00Z"],
      "3:8 there is no such time",
    ],
    ["a start before 1970", ["10m", "10m\nstart: 1969-12-31T23:59Z"], "3:8 must be 1970 or later"],
    ["a fault after the end", ["at: 2m", "at: 20m"], "9:11 is after the end of the run (10m)"],
    ["a step of two kinds", [CALL, "steps: [{ call: a, read: b }]"], "7:58 a step is either"],
    ["a step of none", [CALL, "steps: [{ after: 1s }]"], "7:41 what? give one of call, event"],
    [
      "a check of an answer that has no name",
      [CALL, "steps: [{ call: a, check: b.n == 1 }]"],
      "7:59 no earlier step has an answer named b",
    ],
    [
      "an answer with a name that expressions cannot have",
      [CALL, "steps: [{ call: a, as: public }]"],
      "7:56 public is a word of JavaScript's own",
    ],
    [
      "a check of a step that fails",
      [CALL, "steps: [{ call: a, fails: REMOTE 7, check: answer > 0 }]"],
      "7:76 what fails has no answer",
    ],
    [
      "params from a later answer",
      [CALL, "steps: [{ call: a, params: [$b.n] }, { call: b, as: b }]"],
      '7:60 "$b.n": no earlier step has an answer named b (as: b); for the text itself, write "$$b.n"',
    ],
    [
      "a price in params",
      [CALL, 'steps: [{ call: a, params: ["$5.00"] }]'],
      '7:60 "$5.00": it names nothing that a step answers; for the text itself, write "$$5.00"',
    ],
    [
      "steps that wait for longer than there is",
      [CALL, "steps: [{ call: a, after: 40s }, { call: a, after: 20s }]"],
      "(after: …), so none can begin every 60s",
    ],
    [
      "steps that must fail by not being made",
      [CALL, "steps: [{ call: a, fails: NOT_MADE }]"],
      "7:59 no call ends so; there are REMOTE",
    ],
    [
      "a client that is not there",
      [CALL, "steps: [{ call: a, client: 3 }]"],
      "7:60 there are 2 clients in this group",
    ],
    ["a stream of no length", [CALL, "steps: [{ write: a }]"], "7:41 how much? give bytes"],
    [
      "a code that does not exist",
      [CALL, "steps: [{ call: a, fails: NOPE }]"],
      "7:59 no call ends so; there are REMOTE",
    ],
    ["a call beside its steps", [CALL, "call: a, steps: [{ call: a }]"], "7:33 is in steps"],
    ["broken YAML", ["{ at: 2m,", "{ at: 2m:"], "9:"],
  ] as [string, [string, string], string][])(
    "with %s is refused with line and column",
    async (_what, [from, to], problem) => {
      const found = await problems(GOOD.replace(from, to));
      expect(found[0]).toContain(problem);
    },
  );

  test("of the library that does not exist names those that do", async () => {
    await expect(loadScenario("morning-rsh")).rejects.toThrow(
      /has no scenario "morning-rsh"; it has .*morning-rush/,
    );
  });

  test("that the live world cannot play is refused with line and column, even if the command line asks for it", async () => {
    const text = GOOD.replace("kind: relay.restart", "kind: store.away, for: 1s").replace(
      "program: ./pump.js",
      "program: ./pump.js, address: 10.0.0.1",
    );
    const wanted = ["4:51 address needs world: virtual", "9:21 store.away needs world: virtual"];
    expect(await problems(`${text}world: live\n`)).toEqual(wanted);
    await problems(text);
    const asLive = loadScenario(join(folder, "scenario.yaml"), (scenario) => ({
      ...scenario,
      world: "live",
    }));
    await expect(asLive).rejects.toMatchObject({
      problems: [
        { line: 4, column: 51 },
        { line: 9, column: 21 },
      ],
    });
  });

  test("that names another engine needs the live world, where Espruino keeps its own network", () => {
    const group = { group: "a", count: 1, kind: "echo" as const };
    const scenario = (
      world: "virtual" | "live",
      engine: "xs" | "espruino",
      count = 1,
      version: "1" | "3" = "1",
    ) => ({
      name: "x",
      duration: "1m",
      world,
      devices: [{ ...group, engine, count, packet_version: version }],
      faults: [{ at: "1s", kind: "net.cut" as const }],
    });
    const checked = (...what: Parameters<typeof scenario>) => {
      checkScenario(scenario(...what), folder);
      return "valid";
    };
    expect(checked("live", "xs")).toBe("valid");
    expect(() => checked("virtual", "xs")).toThrow("xs needs world: live");
    expect(() => checked("live", "xs", 101)).toThrow("at most 100");
    expect(() => checked("live", "espruino")).toThrow("net.cut does not reach an Espruino's");
    expect(() => checked("live", "xs", 1, "3")).toThrow('xs has versions "1" and "2" here');
    const limited = {
      ...scenario("live", "xs"),
      devices: [{ ...group, engine: "xs", limits: "board" }],
    };
    expect(() => checkScenario(limited, folder)).toThrow("xs has limits of its own");
  });

  test("created in memory is checked too", () => {
    const scenario = { name: "x", duration: "1m", devices: [{ group: "a", count: 1 }] };
    expect(() => checkScenario(scenario, folder)).toThrow("give either a program");
  });
});
